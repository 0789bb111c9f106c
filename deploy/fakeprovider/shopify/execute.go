package shopify

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// object is a value with fields; "__typename" is one of them. A field may be a computed one.
type object = map[string]any

// computed is a field that depends on its arguments, or is dear to make.
type computed func(args map[string]any) (any, error)

// execution is one operation on its way through the values.
type execution struct {
	schema *ast.Schema
	vars   map[string]any
	errors gqlerror.List
	count  int // objects that were answered: the actual cost
}

// object answers the fields that a selection asks an object for.
func (e *execution) object(value object, set ast.SelectionSet) object {
	e.count++
	out := object{}
	e.each(value, set, func(f *ast.Field) { out[f.Alias] = e.field(value, f) })
	return out
}

// each calls do for the fields that a selection has for a value, those of fragments too.
func (e *execution) each(value object, set ast.SelectionSet, do func(*ast.Field)) {
	typename, _ := value["__typename"].(string)
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if e.wanted(s.Directives) {
				do(s)
			}
		case *ast.InlineFragment:
			if e.wanted(s.Directives) && e.applies(s.TypeCondition, typename) {
				e.each(value, s.SelectionSet, do)
			}
		case *ast.FragmentSpread:
			if e.wanted(s.Directives) && s.Definition != nil && e.applies(s.Definition.TypeCondition, typename) {
				e.each(value, s.Definition.SelectionSet, do)
			}
		}
	}
}

// applies says whether a fragment on a type is for a value of another: of the same, or of an interface or union of it.
func (e *execution) applies(condition, typename string) bool {
	if condition == "" || condition == typename || typename == "" {
		return true
	}
	return slices.ContainsFunc(e.schema.PossibleTypes[condition], func(d *ast.Definition) bool { return d.Name == typename })
}

// wanted applies @include and @skip.
func (e *execution) wanted(directives ast.DirectiveList) bool {
	for _, d := range directives {
		condition, _ := d.ArgumentMap(e.vars)["if"].(bool)
		if d.Name == "include" && !condition || d.Name == "skip" && condition {
			return false
		}
	}
	return true
}

func (e *execution) field(value object, f *ast.Field) any {
	child := value[f.Name]
	if compute, ok := child.(computed); ok {
		var err error
		if child, err = compute(f.ArgumentMap(e.vars)); err != nil {
			e.errors = append(e.errors, gqlerror.WrapPath(ast.Path{ast.PathName(f.Alias)}, err))
			return nil
		}
	}
	return e.value(child, f.SelectionSet)
}

func (e *execution) value(v any, set ast.SelectionSet) any {
	switch v := v.(type) {
	case object:
		if v == nil {
			return nil
		}
		return e.object(v, set)
	case []object:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = e.value(one, set)
		}
		return out
	case lazy:
		return e.value(v(), set)
	case []lazy:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = e.value(one(), set)
		}
		return out
	}
	return v
}

// lazy is an object that is made when a selection asks for it.
type lazy func() object
