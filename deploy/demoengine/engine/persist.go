package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// PersistTo saves the products that the engine reads in a file, since no event is sent twice, and loads those
// of an earlier run.
func (e *Engine) PersistTo(path string) error {
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
	if err := json.Unmarshal(text, &e.memory.catalogs); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// save replaces the file atomically. The caller holds the lock.
func (e *Engine) save() error {
	if e.file == "" {
		return nil
	}
	text, err := json.Marshal(e.memory.catalogs)
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(e.file+".new", e.file)
}
