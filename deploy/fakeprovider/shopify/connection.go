package shopify

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
)

const (
	largestFirst = 250
	deepest      = 25_000 // a listing goes no further; a bulk operation does
)

// entry is one element of a connection: its key in the order, and how to make it; nil when it is gone.
type entry struct {
	key  string
	make func() object
}

// connection lists entries. The arguments may filter and sort them.
type connection func(args map[string]any) ([]entry, error)

// all makes every element.
func (c connection) all() []object {
	entries, _ := c(nil) // only arguments can be wrong
	return made(entries)
}

func made(entries []entry) []object {
	out := make([]object, 0, len(entries))
	for _, e := range entries {
		if o := e.make(); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// page answers the part that `first` and `after` ask for.
func (c connection) page(args map[string]any) (any, error) {
	first, ok := whole(args["first"])
	switch {
	case !ok:
		return nil, errors.New("you must provide one of first or last")
	case first < 0 || first > largestFirst:
		return nil, errors.New("first must be between 0 and " + strconv.Itoa(largestFirst))
	}
	all, err := c(args)
	if err != nil {
		return nil, err
	}
	from := 0
	if after, _ := args["after"].(string); after != "" {
		if from, err = position(all, after); err != nil {
			return nil, err
		}
	}
	if from >= deepest {
		return nil, errors.New("pagination is limited to " + strconv.Itoa(deepest) + " objects")
	}
	to := min(len(all), from+first)
	info := object{"hasNextPage": to < len(all), "endCursor": nil}
	if to > from {
		info["endCursor"] = base64.StdEncoding.EncodeToString([]byte("after:" + all[to-1].key))
	}
	return object{"nodes": made(all[from:to]), "pageInfo": info}, nil
}

// whole reads a number, which is a float64 in a variable.
func whole(v any) (int, bool) {
	switch n := v.(type) {
	case int64:
		return int(n), true
	case float64:
		return int(n), true
	}
	return 0, false
}

// position returns the index behind the element that a cursor names. An element that is gone since then does
// not break a listing.
func position(all []entry, cursor string) (int, error) {
	text, err := base64.StdEncoding.DecodeString(cursor)
	key, ok := strings.CutPrefix(string(text), "after:")
	if err != nil || !ok || key == "" {
		return 0, errors.New("invalid cursor for current pagination sort")
	}
	if at := slices.IndexFunc(all, func(e entry) bool { return e.key == key }); at >= 0 {
		return at + 1, nil
	}
	if at := slices.IndexFunc(all, func(e entry) bool { return e.key > key }); at >= 0 {
		return at, nil
	}
	return len(all), nil
}

// fixed is a connection of given nodes.
func fixed(nodes []object) connection {
	return func(map[string]any) ([]entry, error) {
		all := make([]entry, len(nodes))
		for i, n := range nodes {
			all[i] = entry{strconv.Itoa(1_000_000 + i), func() object { return n }}
		}
		return all, nil
	}
}
