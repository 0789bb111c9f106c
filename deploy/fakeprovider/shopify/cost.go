package shopify

import (
	"math"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// mostForOne is the cost that no single query may exceed.
const mostForOne = 1000

// price is the requested cost of a selection. It follows the provider's outline and not its tables: a scalar costs nothing, an object
// one point, a mutation ten, a connection by how many it is asked for, growing ever slower.
func price(set ast.SelectionSet, vars map[string]any) float64 {
	sum := 0.0
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.InlineFragment:
			sum += price(s.SelectionSet, vars)
		case *ast.FragmentSpread:
			if s.Definition != nil {
				sum += price(s.Definition.SelectionSet, vars)
			}
		case *ast.Field:
			sum += priceOf(s, vars)
		}
	}
	return sum
}

func priceOf(f *ast.Field, vars map[string]any) float64 {
	if f.ObjectDefinition != nil && f.ObjectDefinition.Name == "Mutation" {
		return 10
	}
	if len(f.SelectionSet) == 0 || f.Name == "pageInfo" {
		return 0
	}
	inner := price(f.SelectionSet, vars)
	if f.Definition == nil || !strings.HasSuffix(f.Definition.Type.Name(), "Connection") {
		if f.Name == "edges" || f.Name == "nodes" {
			return inner
		}
		return 1 + inner
	}
	args := f.ArgumentMap(vars)
	many, _ := whole(args["first"])
	if last, ok := whole(args["last"]); ok {
		many = last
	}
	return 2 + math.Ceil(math.Sqrt(float64(max(many, 0))))*max(1, inner)
}
