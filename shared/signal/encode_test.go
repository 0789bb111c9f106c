package signal

import (
	"encoding/json"
	"testing"
)

// TestAppendString: every text is read back as it was written.
func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "a\"b", `back\slash`, "line\nend", "\x00\x1f", "\x7f", "ñandú",
		"日本", "end\\", "\"", " "} {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil || got != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	if got := string(appendString(nil, "a\xffb")); got != "\"a\ufffdb\"" {
		t.Errorf("broken UTF-8: %q", got)
	}
}
