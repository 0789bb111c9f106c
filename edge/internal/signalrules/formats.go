package signalrules

import "strings"

// webURL reports whether s is an absolute http or https URL with a host. The rest of it is the storefront's.
func webURL(s string) bool {
	i := strings.IndexByte(s, ':')
	if i < 0 || !strings.HasPrefix(s[i:], "://") || !strings.EqualFold(s[:i], "http") &&
		!strings.EqualFold(s[:i], "https") {
		return false
	}
	begin := i + len("://") // of the host, behind the user
	end := begin
	for ; end < len(s) && s[end] != '/' && s[end] != '?' && s[end] != '#'; end++ {
		if s[end] == '@' {
			begin = end + 1
		}
	}
	if begin == end || s[begin] == ':' {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// telephone reports whether s could be a telephone number: all digits, 7 to 15 of them.
func telephone(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) >= 7 && len(s) <= 15
}
