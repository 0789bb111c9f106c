package shopify

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"
)

// mostForOne is the cost that no single query may exceed.
const mostForOne = 1000

// price is the requested cost of a selection. It approximates the provider's published rules: a scalar costs
// nothing, an object one point, a mutation ten, and a connection depends on how many elements are asked for.
func price(set ast.SelectionSet, vars map[string]any) float64 {
	sum := 0.0
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.InlineFragment:
			sum += price(s.SelectionSet, vars)
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
	switch {
	case isConnection(f):
		many, _ := whole(f.ArgumentMap(vars)["first"])
		return 2 + math.Ceil(math.Sqrt(float64(max(many, 0))))*max(1, inner)
	case f.Name == "edges" || f.Name == "nodes":
		return inner
	default:
		return 1 + inner
	}
}
