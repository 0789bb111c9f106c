package remote

import (
	"strconv"
	"strings"

	"storefront.internal/control/internal/provider"
)

// FormatCursor writes a cursor of a kind and numbers: "page:3:200".
func FormatCursor(kind string, numbers ...int64) provider.Cursor {
	text := kind
	for _, n := range numbers {
		text += ":" + strconv.FormatInt(n, 10)
	}
	return provider.Cursor(text)
}

// ParseCursor reads the numbers of a cursor of that kind. It reports false for another kind, another count,
// and numbers below zero.
func ParseCursor(c provider.Cursor, kind string, count int) (numbers []int64, ok bool) {
	parts := strings.Split(string(c), ":")
	if parts[0] != kind || len(parts) != 1+count {
		return nil, false
	}
	for _, part := range parts[1:] {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}
