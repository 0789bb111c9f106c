package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Keep makes the engine remember the products that it read in a file: nobody tells it of them a second time. It reads what
// an earlier run left there.
func (e *Engine) Keep(path string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.file = path
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &e.memory.shelves); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// save writes the file so that a crash never leaves half of it. The caller holds the lock.
func (e *Engine) save() error {
	if e.file == "" {
		return nil
	}
	text, err := json.Marshal(e.memory.shelves)
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(e.file+".new", e.file)
}
