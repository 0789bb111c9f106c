package shopify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

// bulkOperation goes CREATED → RUNNING → COMPLETED, one step each time that it is read, so that a caller has
// to wait and a test has not. It exports the shop as it was at the start. The file is written in the
// background.
type bulkOperation struct {
	written chan struct{} // closed when lines, objects and roots are set
	id      int64
	status  string
	created time.Time
	objects int
	roots   int
	lines   []byte
	list    *ast.Field // the connection that is exported
}

const (
	created   = "CREATED"
	running   = "RUNNING"
	completed = "COMPLETED"

	atOnce     = 5               // running exports of a shop
	shortest   = 3 * time.Second // an operation counts as running at least so long
	readWait   = 2 * time.Second // a read waits so long for the file
	keptExport = 8               // of a shop; older files are dropped
)

// unfinished reports whether the operation counts toward the limit of a shop.
func (b *bulkOperation) unfinished(now time.Time) bool {
	select {
	case <-b.written:
		return b.status != completed && now.Sub(b.created) < shortest
	default:
		return true
	}
}

// read moves an operation on and answers it as it is then.
func (f *Fake) read(r call, b *bulkOperation) object {
	f.mu.Lock()
	next, wait := running, b.status == running
	f.mu.Unlock()
	if wait {
		select {
		case <-b.written:
			next = completed
		case <-time.After(readWait):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.status != completed {
		b.status = next
	}
	out := object{"id": gid("BulkOperation", b.id), "status": b.status, "errorCode": nil, "url": nil,
		"objectCount": "0", "rootObjectCount": "0"}
	if b.status == completed {
		out["objectCount"], out["rootObjectCount"] = fmt.Sprint(b.objects), fmt.Sprint(b.roots)
		if b.objects > 0 { // an export of nothing has no file
			out["url"] = fmt.Sprintf("%s/bulk/%d.jsonl", r.base, b.id)
		}
	}
	return out
}

func (f *Fake) findBulk(shop string, id int64) *bulkOperation {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.bulk[shop] {
		if b.id == id {
			return b
		}
	}
	return nil
}

func (f *Fake) bulkByID(r call, id any) (any, error) {
	_, n, err := ref(id)
	if err != nil {
		return nil, err
	}
	if b := f.findBulk(r.store.ID, n); b != nil {
		return f.read(r, b), nil
	}
	return nil, nil
}

func (f *Fake) runBulk(r call, args map[string]any) object {
	refused := func(code, message string) object {
		fault := object{"code": code, "field": []string{"query"}, "message": message}
		return object{"bulkOperation": nil, "userErrors": []object{fault}}
	}
	query, _ := args["query"].(string)
	list, err := f.exported(query)
	if err != nil {
		return refused("INVALID", err.Error())
	}
	if args["groupObjects"] != true {
		return refused("INVALID", "this fake writes grouped files only")
	}
	now := f.config.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.bulk[r.store.ID]
	unfinished := 0
	for _, other := range all {
		if other.unfinished(now) {
			unfinished++
		}
	}
	if unfinished >= atOnce {
		return refused("OPERATION_IN_PROGRESS", "A bulk query operation for this shop is already in progress")
	}
	f.lastBulk++
	b := &bulkOperation{
		id:      f.lastBulk,
		status:  created,
		created: now,
		list:    list,
		written: make(chan struct{}),
	}
	f.bulk[r.store.ID] = append(slices.Clone(all[max(0, len(all)+1-keptExport):]), b)
	go f.export(call{store: r.store.Snapshot()}, b)
	return object{
		"bulkOperation": object{"id": gid("BulkOperation", b.id), "status": created},
		"userErrors":    []object{},
	}
}

// exported checks a query by the provider's rules: one connection at the top, at most five in all, and none
// nested deeper than two.
func (f *Fake) exported(query string) (*ast.Field, error) {
	op, _, faults := f.prepare(query, "", nil)
	if len(faults) > 0 {
		return nil, faults
	}
	top, _ := op.SelectionSet[0].(*ast.Field)
	if op.Operation != ast.Query || len(op.SelectionSet) != 1 || top == nil || !isConnection(top) {
		return nil, errors.New("bulk queries must contain exactly one connection at the top level")
	}
	if lists, depth := connections(op.SelectionSet, 0); lists > 5 || depth > 3 {
		return nil, errors.New("bulk queries cannot contain more than 5 connections, nested no deeper than 2")
	}
	return top, nil
}

func isConnection(f *ast.Field) bool {
	return f.Definition != nil && strings.HasSuffix(f.Definition.Type.Name(), "Connection")
}

// connections counts the connections of a selection and how deep they are nested.
func connections(set ast.SelectionSet, depth int) (lists, deepest int) {
	deepest = depth
	for _, s := range set {
		f, ok := s.(*ast.Field)
		if !ok {
			continue
		}
		below := depth
		if isConnection(f) {
			lists, below = lists+1, depth+1
		}
		n, d := connections(f.SelectionSet, below)
		lists, deepest = lists+n, max(deepest, d)
	}
	return lists, deepest
}
