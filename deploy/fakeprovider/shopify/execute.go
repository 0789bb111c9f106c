package shopify

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// object is a value with fields. "__typename" is needed only where a selection has a fragment on a type. A
// field may be a resolver or a connection.
type object = map[string]any

// resolver computes a field from its arguments.
type resolver func(args map[string]any) (any, error)

// execution answers one operation.
type execution struct {
	vars   map[string]any
	errors gqlerror.List
	count  int // answered objects: the actual cost
}

// object answers the selected fields of an object.
func (e *execution) object(value object, set ast.SelectionSet) object {
	e.count++
	out := object{}
	each(value, set, func(f *ast.Field) { out[f.Alias] = e.field(value, f) })
	return out
}

// each calls do for the fields that a selection has for a value. Named fragments are refused by prepare.
func each(value object, set ast.SelectionSet, do func(*ast.Field)) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			do(s)
		case *ast.InlineFragment:
			if typename := value["__typename"]; typename == nil || s.TypeCondition == typename {
				each(value, s.SelectionSet, do)
			}
		}
	}
}

func (e *execution) field(value object, f *ast.Field) any {
	child, err := value[f.Name], error(nil)
	switch c := child.(type) {
	case resolver:
		child, err = c(f.ArgumentMap(e.vars))
	case connection:
		child, err = c.page(f.ArgumentMap(e.vars))
	}
	if err != nil {
		e.errors = append(e.errors, gqlerror.WrapPath(ast.Path{ast.PathName(f.Alias)}, err))
		return nil
	}
	switch c := child.(type) {
	case object:
		if c != nil {
			return e.object(c, f.SelectionSet)
		}
		return nil
	case []object:
		out := make([]object, len(c))
		for i, one := range c {
			out[i] = e.object(one, f.SelectionSet)
		}
		return out
	}
	return child
}
