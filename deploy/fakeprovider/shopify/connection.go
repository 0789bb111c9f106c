package shopify

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
)

// everything is an argument that only a bulk operation gives: the whole list, which has no parts there.
const everything = "\x00everything"

const (
	largestFirst = 250
	deepest      = 25_000 // no list goes further; the bulk operation does
)

// entry is one element of a connection: its place in the order, and how to make it.
type entry struct {
	key  string
	make lazy
}

// connection is a list that is asked for in parts. The query filters it, when it is one that can be filtered.
type connection struct {
	typename string
	entries  func(args map[string]any) ([]entry, error)
}

// field makes the field of an object that answers a connection.
func (c connection) field() computed {
	return func(args map[string]any) (any, error) {
		if args[everything] == true {
			all, err := c.entries(args)
			return c.answer(all, false, false), err
		}
		first, last, err := part(args)
		if err != nil {
			return nil, err
		}
		all, err := c.entries(args)
		if err != nil {
			return nil, err
		}
		if reverse, _ := args["reverse"].(bool); reverse {
			slices.Reverse(all)
		}
		return c.page(all, args, first, last)
	}
}

// part reads how many are wanted: exactly one of first and last.
func part(args map[string]any) (first, last int, err error) {
	first, hasFirst := whole(args["first"])
	last, hasLast := whole(args["last"])
	switch {
	case hasFirst == hasLast:
		return 0, 0, errors.New("you must provide one of first or last")
	case first < 0 || last < 0:
		return 0, 0, errors.New("first and last must not be negative")
	case first > largestFirst || last > largestFirst:
		return 0, 0, errors.New("first and last must be at most " + strconv.Itoa(largestFirst))
	}
	return first, last, nil
}

func whole(v any) (int, bool) {
	switch n := v.(type) {
	case int64:
		return int(n), true
	case int:
		return n, true
	case float64:
		return int(n), true
	}
	return 0, false
}

func (c connection) page(all []entry, args map[string]any, first, last int) (any, error) {
	from, to := 0, len(all)
	if after, _ := args["after"].(string); after != "" {
		at, err := place(all, after)
		if err != nil {
			return nil, err
		}
		from = at + 1
	}
	if before, _ := args["before"].(string); before != "" {
		at, err := place(all, before)
		if err != nil {
			return nil, err
		}
		to = max(at, from)
	}
	if first > 0 {
		to = min(to, from+first)
	} else {
		from = max(from, to-last)
	}
	if from >= deepest {
		return nil, errors.New("pagination is limited to " + strconv.Itoa(deepest) + " objects")
	}
	return c.answer(all[from:to], from > 0, to < len(all)), nil
}

func (c connection) answer(some []entry, previous, next bool) object {
	edges, nodes := make([]object, len(some)), make([]lazy, len(some))
	info := object{"__typename": "PageInfo", "hasPreviousPage": previous, "hasNextPage": next, "startCursor": nil, "endCursor": nil}
	for i, e := range some {
		edges[i] = object{"__typename": c.typename + "Edge", "cursor": cursorOf(e.key), "node": e.make}
		nodes[i] = e.make
	}
	if len(some) > 0 {
		info["startCursor"], info["endCursor"] = cursorOf(some[0].key), cursorOf(some[len(some)-1].key)
	}
	return object{"__typename": c.typename + "Connection", "edges": edges, "nodes": nodes, "pageInfo": info}
}

func cursorOf(key string) string { return base64.StdEncoding.EncodeToString([]byte("after:" + key)) }

// place finds the element that a cursor names, or where it was: what has gone since does not break a listing.
func place(all []entry, cursor string) (int, error) {
	text, err := base64.StdEncoding.DecodeString(cursor)
	key, ok := string(text), err == nil && len(text) > len("after:")
	if !ok {
		return 0, errors.New("invalid cursor for current pagination sort")
	}
	key = key[len("after:"):]
	if at := slices.IndexFunc(all, func(e entry) bool { return e.key == key }); at >= 0 {
		return at, nil
	}
	if at := slices.IndexFunc(all, func(e entry) bool { return e.key > key }); at >= 0 {
		return at - 1, nil
	}
	return len(all) - 1, nil
}

// fixed is a connection of what is there already.
func fixed(typename string, nodes []object) connection {
	return connection{typename, func(map[string]any) ([]entry, error) {
		all := make([]entry, len(nodes))
		for i, n := range nodes {
			all[i] = entry{strconv.Itoa(1_000_000 + i), func() object { return n }}
		}
		return all, nil
	}}
}
