package pg_test

import (
	"strings"
	"testing"

	"storefront.internal/shared/pg"
)

func TestSafeText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äöü"},
		{"a\x00b", 9, "a\ufffdb"},
		{"a\xff\xfeb", 9, "a\ufffdb"}, {"😀😀\xf0\x9f", 3, "😀😀\ufffd"},
		{strings.Repeat("\x00", 9), 2, "\ufffd\ufffd"},
	} {
		if got := pg.SafeText(tt.in, tt.max); got != tt.want {
			t.Errorf("%q to %d: %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}
