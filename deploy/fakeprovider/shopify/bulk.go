package shopify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

// bulkOperation goes CREATED → RUNNING → COMPLETED, one step each time that it is looked at, so that a caller has to wait and a test
// has not. What it exports is the shop as it was at the start: what changes meanwhile is newer. The file is written in the background,
// whether anybody looks or not.
type bulkOperation struct {
	written   chan struct{} // closed when lines, objects and roots are there
	id        int64
	query     string
	status    string
	grouped   bool
	created   time.Time
	completed time.Time
	objects   int
	roots     int
	lines     []byte
	op        *ast.OperationDefinition
}

const (
	created   = "CREATED"
	running   = "RUNNING"
	completed = "COMPLETED"
	canceled  = "CANCELED"
)

// shortest is how long an operation counts as under way at least, and glance how long a look waits for the file.
const (
	shortest = 3 * time.Second
	glance   = 2 * time.Second
)

// open reports an operation that counts toward those that a shop may run.
func (b *bulkOperation) open(now time.Time) bool {
	return (b.status == created || b.status == running) && (!b.ended(0) || now.Sub(b.created) < shortest)
}

// ended reports whether the file is written, after so long a wait.
func (b *bulkOperation) ended(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-b.written:
		return true
	case <-timer.C:
	}
	select {
	case <-b.written:
		return true
	default:
		return false
	}
}

// look answers an operation as it is, and moves it on.
func (f *Fake) look(r call, b *bulkOperation) object {
	f.mu.Lock()
	status := b.status
	f.mu.Unlock()
	ended := status == running && b.ended(glance)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case b.status == created:
		b.status = running
	case b.status == running && ended:
		b.status, b.completed = completed, f.config.Now()
	}
	return b.view(r)
}

func (b *bulkOperation) view(r call) object {
	out := object{
		"__typename": "BulkOperation", "id": gid("BulkOperation", b.id), "status": b.status, "errorCode": nil, "createdAt": stamp(b.created),
		"completedAt": nil, "objectCount": "0", "rootObjectCount": "0", "fileSize": nil, "url": nil, "partialDataUrl": nil, "query": b.query, "type": "QUERY",
	}
	if b.status == completed {
		out["completedAt"], out["objectCount"], out["rootObjectCount"] = stamp(b.completed), fmt.Sprint(b.objects), fmt.Sprint(b.roots)
		out["fileSize"] = fmt.Sprint(len(b.lines))
		if b.objects > 0 { // an export of nothing has no file
			out["url"] = fmt.Sprintf("%s/bulk/%d.jsonl", r.base, b.id)
		}
	}
	return out
}

func (f *Fake) findBulk(shop string, id int64) *bulkOperation {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.IndexFunc(f.bulk[shop], func(b *bulkOperation) bool { return b.id == id }); at >= 0 {
		return f.bulk[shop][at]
	}
	return nil
}

func (f *Fake) bulkByID(r call, id any) (any, error) {
	_, n, err := ref(id)
	if err != nil {
		return nil, err
	}
	if b := f.findBulk(r.store.ID, n); b != nil {
		return f.look(r, b), nil
	}
	return nil, nil
}

func (f *Fake) currentBulk(r call) (any, error) {
	f.mu.Lock()
	all := f.bulk[r.store.ID]
	f.mu.Unlock()
	if len(all) == 0 {
		return nil, nil
	}
	return f.look(r, all[len(all)-1]), nil
}

func (f *Fake) bulkOperations(r call) connection {
	return connection{"BulkOperation", func(map[string]any) ([]entry, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		all := []entry{}
		for _, b := range f.bulk[r.store.ID] {
			all = append(all, entry{fmt.Sprintf("%019d", b.id), func() object { return f.look(r, b) }})
		}
		return all, nil
	}}
}

// atOnce is how many bulk queries a shop may run: one before the version 2026-01, five since.
func atOnce(version string) int {
	if version < "2026-01" {
		return 1
	}
	return 5
}

func bulkFault(code, message string) []object {
	return []object{{"__typename": "BulkOperationUserError", "code": code, "field": []string{"query"}, "message": message}}
}

func (f *Fake) runBulk(r call, args map[string]any) object {
	out := object{"__typename": "BulkOperationRunQueryPayload", "bulkOperation": nil, "userErrors": []object{}}
	query, _ := args["query"].(string)
	b, err := f.newBulk(r, query)
	if err != nil {
		out["userErrors"] = bulkFault("INVALID", err.Error())
		return out
	}
	grouped, said := args["groupObjects"].(bool)
	if b.grouped = grouped; !said {
		b.grouped = r.version < "2026-01" // the default changed with that version
	}
	f.mu.Lock()
	open := 0
	for _, other := range f.bulk[r.store.ID] {
		if other.open(f.config.Now()) {
			open++
		}
	}
	f.mu.Unlock()
	if open >= atOnce(r.version) {
		out["userErrors"] = bulkFault("OPERATION_IN_PROGRESS", "A bulk query operation for this app and shop is already in progress")
		return out
	}
	frozen := r
	frozen.store = r.store.Frozen()
	go func() {
		f.export(frozen, b)
		close(b.written)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastBulk++
	b.id = f.lastBulk
	f.bulk[r.store.ID] = keepSome(append(f.bulk[r.store.ID], b))
	out["bulkOperation"] = b.view(r)
	return out
}

// keepSome forgets the files of all but the newest operations.
func keepSome(all []*bulkOperation) []*bulkOperation {
	const most = 8
	return all[max(0, len(all)-most):]
}

// newBulk judges a query by the provider's rules: one list at the top, no more than five in all and none deeper than two below it.
func (f *Fake) newBulk(r call, query string) (*bulkOperation, error) {
	op, _, faults := f.prepare(query, "", nil)
	if len(faults) > 0 {
		return nil, faults
	}
	lists, depth := connections(op.SelectionSet, 0)
	switch {
	case op.Operation != ast.Query || len(op.SelectionSet) != 1 || !isConnection(op.SelectionSet[0]):
		return nil, errors.New("Bulk queries must contain exactly one connection at the top level") //nolint:staticcheck // the provider's sentence
	case lists > 5 || depth > 3:
		return nil, errors.New("Bulk queries cannot contain more than 5 connections, nested no deeper than 2") //nolint:staticcheck // the provider's sentence
	}
	return &bulkOperation{query: query, status: created, created: f.config.Now(), op: op, written: make(chan struct{})}, nil
}

func isConnection(s ast.Selection) bool {
	f, ok := s.(*ast.Field)
	return ok && f.Definition != nil && strings.HasSuffix(f.Definition.Type.Name(), "Connection")
}

// connections counts the lists of a selection and how deep they lie.
func connections(set ast.SelectionSet, depth int) (lists, deepest int) {
	deepest = depth
	for _, s := range set {
		inner, below := ast.SelectionSet(nil), depth
		switch s := s.(type) {
		case *ast.Field:
			inner = s.SelectionSet
			if isConnection(s) {
				lists, below = lists+1, depth+1
			}
		case *ast.InlineFragment:
			inner = s.SelectionSet
		case *ast.FragmentSpread:
			if s.Definition != nil {
				inner = s.Definition.SelectionSet
			}
		}
		n, d := connections(inner, below)
		lists, deepest = lists+n, max(deepest, d)
	}
	return lists, deepest
}

func (f *Fake) cancelBulk(r call, args map[string]any) (any, error) {
	_, n, err := ref(args["id"])
	if err != nil {
		return nil, err
	}
	out := object{"__typename": "BulkOperationCancelPayload", "bulkOperation": nil, "userErrors": []object{}}
	b := f.findBulk(r.store.ID, n)
	f.mu.Lock()
	defer f.mu.Unlock()
	if b == nil || b.status != created && b.status != running {
		out["userErrors"] = userError("Bulk operation cannot be canceled", "id")
		return out, nil
	}
	b.status = canceled
	out["bulkOperation"] = b.view(r)
	return out, nil
}
