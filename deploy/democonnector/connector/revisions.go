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

// Revisions stores the revision that each entity was last delivered with, for a shop that does not count
// revisions itself. An unchanged entity keeps its revision, so that its next delivery is a `duplicate`; a
// changed one gets the next.
type Revisions struct {
	path    string
	entries map[string]entry
}

type entry struct {
	Revision int64  `json:"revision"`
	Content  string `json:"content"` // a digest of what was delivered at that revision
}

// OpenRevisions reads the file of an earlier run, or begins a new one.
func OpenRevisions(path string) (*Revisions, error) {
	r := &Revisions{path: path, entries: map[string]entry{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &r.entries); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Assign sets the revision of each observation. Save before the observations are sent: a revision that was
// sent and then lost would be used again for other content.
func (r *Revisions) Assign(all []Observation) error {
	for i := range all {
		o := &all[i]
		content, err := json.Marshal([]any{o.Operation, o.Document})
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Entity, o.ExternalID, err)
		}
		sum := sha256.Sum256(content)
		digest, key := hex.EncodeToString(sum[:]), o.Entity+" "+o.ExternalID
		e := r.entries[key]
		if e.Content != digest {
			e = entry{e.Revision + 1, digest}
			r.entries[key] = e
		}
		o.Revision = e.Revision
	}
	return nil
}

// Save replaces the file atomically.
func (r *Revisions) Save() error {
	text, err := json.Marshal(r.entries)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), r.path)
}
