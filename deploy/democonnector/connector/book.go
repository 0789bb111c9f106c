package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Book keeps the revision that each entity was last delivered with, for a shop that does not count revisions itself. An
// unchanged entity keeps its revision, so that delivering it again is answered `duplicate`; a changed one gets the next.
type Book struct {
	path    string
	entries map[string]entry
}

type entry struct {
	Revision int64  `json:"revision"`
	Content  string `json:"content"` // a digest of what was delivered at that revision
}

// OpenBook reads the book of an earlier run, or begins one.
func OpenBook(path string) (*Book, error) {
	b := &Book{path: path, entries: map[string]entry{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &b.entries); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// Revise sets the revision of each observation. Save the book before the observations are sent: a revision that was used and
// then forgotten would be used for other content.
func (b *Book) Revise(all []Observation) error {
	for i := range all {
		o := &all[i]
		content, err := json.Marshal([]any{o.Operation, o.Document})
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Entity, o.ExternalID, err)
		}
		sum := sha256.Sum256(content)
		digest, key := hex.EncodeToString(sum[:]), o.Entity+" "+o.ExternalID
		e := b.entries[key]
		if e.Content != digest {
			e = entry{e.Revision + 1, digest}
			b.entries[key] = e
		}
		o.Revision = e.Revision
	}
	return nil
}

// Save writes the book so that a reader never finds half of it.
func (b *Book) Save() error {
	text, err := json.Marshal(b.entries)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(b.path), filepath.Base(b.path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), b.path)
}
