package shopify

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// export writes the file of an operation: a line for each object, children behind their parent.
func (f *Fake) export(r call, b *bulkOperation) {
	x := exporter{}
	list, _ := f.queries(r)[b.list.Name].(connection)
	for _, node := range list.all() {
		x.line(node, nodeSelection(b.list), "")
		b.roots++
	}
	b.lines, b.objects = x.out.Bytes(), x.objects
	close(b.written)
}

type exporter struct {
	execution
	out     bytes.Buffer
	objects int
}

// nodeSelection is what a connection is asked about each element, by its edges or its nodes.
func nodeSelection(list *ast.Field) (set ast.SelectionSet) {
	for _, s := range list.SelectionSet {
		f, ok := s.(*ast.Field)
		switch {
		case ok && (f.Name == "nodes" || f.Name == "node"):
			set = append(set, f.SelectionSet...)
		case ok && f.Name == "edges":
			set = append(set, nodeSelection(f)...)
		}
	}
	return set
}

// line writes one object and then those of its connections.
func (x *exporter) line(node object, set ast.SelectionSet, parent string) {
	var lists []*ast.Field
	out := object{}
	each(node, set, func(f *ast.Field) {
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
	x.out.Write(append(text, '\n'))
	x.objects++
	id, _ := node["id"].(string)
	for _, list := range lists {
		children, _ := node[list.Name].(connection)
		for _, child := range children.all() {
			x.line(child, nodeSelection(list), id)
		}
	}
}

// bulkFile serves a finished export, or a part of it.
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
	if !done { // the export may still be writing
		refuse(w, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	http.ServeContent(w, r, "", b.created, bytes.NewReader(b.lines))
}
