package pg

import (
	"strings"
	"unicode/utf8"
)

// SafeText returns s as text that PostgreSQL stores: invalid UTF-8 and NUL characters become U+FFFD, and only
// the first maxRunes characters are kept.
func SafeText(s string, maxRunes int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
	if len(s) <= maxRunes || utf8.RuneCountInString(s) <= maxRunes {
		return s
	}
	return string([]rune(s)[:maxRunes])
}
