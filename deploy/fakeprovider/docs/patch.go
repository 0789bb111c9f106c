package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNoObject is the error of a patch that is not a JSON object.
var ErrNoObject = errors.New("the body must be a JSON object")

// Members is a JSON object with its values as they were written.
type Members map[string]json.RawMessage

// Patch replaces members of a document, or of a generated one when the id is new. The elements of a list of
// documents are merged with those of the same id. The time of the change is now, unless the patch sets
// another time than the document had.
func (t *Table) Patch(id int64, patch []byte, now time.Time) (created bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, there := t.changed[id]
	if !there {
		old = t.fromBase(id)
	}
	members, err := ParseMembers(old.JSON)
	if err != nil {
		return false, fmt.Errorf("stored document %d: %w", id, err)
	}
	changes, err := ParseMembers(patch)
	if err != nil {
		return false, err
	}
	changes["id"] = json.RawMessage(fmt.Sprint(id))
	updated := t.changedAt(members, changes, now)
	for name, value := range changes {
		if slices.Contains(t.base.Lists, name) {
			if value, err = mergeList(id, members[name], value); err != nil {
				return false, fmt.Errorf("%s: %w", name, err)
			}
		}
		members[name] = value
	}
	text, err := json.Marshal(members)
	if err != nil {
		return false, err
	}
	return t.put(Doc{ID: id, Updated: updated, JSON: text}), nil
}

// changedAt returns the time of a change and writes it into the changes.
func (t *Table) changedAt(old, changes Members, now time.Time) time.Time {
	name := t.base.UpdatedAt
	var text string
	if sent, ok := changes[name]; ok && !bytes.Equal(sent, old[name]) && json.Unmarshal(sent, &text) == nil {
		if at, err := t.base.ParseTime(text); err == nil {
			return at
		}
	}
	changes[name], _ = json.Marshal(t.base.FormatTime(now)) // a string
	return now
}

// ParseMembers reads a JSON object.
func ParseMembers(text []byte) (Members, error) {
	var members Members
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, ErrNoObject
	}
	return members, nil
}

// ID is the number of the member `id`, 0 when there is none.
func (m Members) ID() int64 {
	var id int64
	_ = json.Unmarshal(m["id"], &id) // 0 is the answer
	return id
}

// mergeList merges the elements of sent into those of old with the same id. An element without an id gets the
// next id of its owner.
func mergeList(owner int64, old, sent json.RawMessage) (json.RawMessage, error) {
	var before, after []Members
	if err := json.Unmarshal(sent, &after); err != nil {
		return sent, nil //nolint:nilerr // null, or anything else that a test wants there
	}
	_ = json.Unmarshal(old, &before)
	next := owner*100 + 1
	byID := map[int64]Members{}
	for _, m := range before {
		byID[m.ID()] = m
		next = max(next, m.ID()+1)
	}
	for i, m := range after {
		if m == nil {
			return nil, ErrNoObject
		}
		if m.ID() == 0 {
			m["id"] = json.RawMessage(fmt.Sprint(next))
			next++
		}
		if base, ok := byID[m.ID()]; ok {
			for name, value := range base {
				if _, set := m[name]; !set {
					m[name] = value
				}
			}
		}
		after[i] = m
	}
	return json.Marshal(after)
}
