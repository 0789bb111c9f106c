package shopify

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// exporter writes the JSONL of a bulk operation.
type exporter struct {
	*execution
	out     bytes.Buffer
	later   bytes.Buffer // lines of children, when they are not grouped under their parents
	objects int
	grouped bool
}

// scatter is after how many parents the children that wait are written, when nobody asked for groups.
const scatter = 20

// export writes the file of an operation.
func (f *Fake) export(r call, b *bulkOperation) {
	x := &exporter{execution: &execution{schema: f.schema}, grouped: b.grouped}
	top := b.op.SelectionSet[0].(*ast.Field) // newBulk has seen that it is one
	for _, node := range x.nodes(f.queries(r), top) {
		x.line(node, nodeSelection(top), "")
		b.roots++
		if b.roots%scatter == 0 {
			x.flush()
		}
	}
	x.flush()
	b.lines, b.objects = x.out.Bytes(), x.objects
}

func (x *exporter) flush() {
	x.out.Write(x.later.Bytes())
	x.later.Reset()
}

// nodes are all elements of a list, whatever part of it the query asks for.
func (x *exporter) nodes(owner object, list *ast.Field) []object {
	compute, ok := owner[list.Name].(computed)
	if !ok {
		return nil
	}
	args := list.ArgumentMap(nil)
	args[everything] = true
	answer, err := compute(args)
	whole, isList := answer.(object)
	if err != nil || !isList {
		return nil
	}
	var all []object
	made, _ := whole["nodes"].([]lazy)
	for _, one := range made {
		if node := one(); node != nil {
			all = append(all, node)
		}
	}
	return all
}

// nodeSelection is what a list is asked about each element, by its edges or its nodes.
func nodeSelection(list *ast.Field) ast.SelectionSet {
	var set ast.SelectionSet
	for _, s := range list.SelectionSet {
		f, ok := s.(*ast.Field)
		switch {
		case ok && f.Name == "nodes":
			set = append(set, f.SelectionSet...)
		case ok && f.Name == "edges":
			for _, inner := range f.SelectionSet {
				if n, ok := inner.(*ast.Field); ok && n.Name == "node" {
					set = append(set, n.SelectionSet...)
				}
			}
		}
	}
	return set
}

// line writes one object and then, or later, those of the lists in it.
func (x *exporter) line(node object, set ast.SelectionSet, parent string) {
	var lists []*ast.Field
	out := object{}
	x.each(node, set, func(f *ast.Field) {
		if isConnection(f) {
			lists = append(lists, f)
			return
		}
		out[f.Alias] = x.field(node, f)
	})
	if parent != "" {
		out["__parentId"] = parent
	}
	text, err := json.Marshal(out)
	if err != nil {
		return // maps of strings and numbers
	}
	into := &x.out
	if parent != "" && !x.grouped {
		into = &x.later
	}
	into.Write(append(text, '\n'))
	x.objects++
	id, _ := node["id"].(string)
	for _, list := range lists {
		for _, child := range x.nodes(node, list) {
			x.line(child, nodeSelection(list), id)
		}
	}
}

// bulkFile serves a finished export, or a part of it, to whoever knows its address.
func (f *Fake) bulkFile(w http.ResponseWriter, r *http.Request) {
	text, ok := strings.CutSuffix(r.PathValue("file"), ".jsonl")
	id, err := strconv.ParseInt(text, 10, 64)
	b := f.findBulk(shopName(r.PathValue("shop")), id)
	if !ok || err != nil || b == nil {
		refuse(w, http.StatusNotFound)
		return
	}
	f.mu.Lock()
	done := b.status == completed
	f.mu.Unlock()
	if !done { // the export may still write
		refuse(w, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	http.ServeContent(w, r, "", b.created, bytes.NewReader(b.lines)) // in parts, as the provider's storage does
}
