package intake

import "strings"

// webURL reports whether s is an absolute http or https URL with a host. The rest of it is the storefront's.
func webURL(s string) bool {
	i := strings.IndexByte(s, ':')
	if i < 0 || !strings.HasPrefix(s[i:], "://") || !strings.EqualFold(s[:i], "http") && !strings.EqualFold(s[:i], "https") {
		return false
	}
	begin := i + len("://") // of the host, behind what names a user
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

// languageTag reports whether s is a well-formed BCP 47 tag (RFC 5646, section 2.2.9). The irregular tags of old are
// taken too.
func languageTag(s string) bool { return regularTag(s) || irregularTag(s) }

func regularTag(s string) bool {
	p := tagParser{rest: s}
	if p.take() && (p.tag == "x" || p.tag == "X") {
		return p.private()
	}
	return p.language() && p.tail()
}

func irregularTag(s string) bool {
	switch strings.ToLower(s) {
	case "en-gb-oed", "i-ami", "i-bnn", "i-default", "i-enochian", "i-hak", "i-klingon", "i-lux", "i-mingo", "i-navajo",
		"i-pwn", "i-tao", "i-tay", "i-tsu", "sgn-be-fr", "sgn-be-nl", "sgn-ch-de":
		return true
	}
	return false
}

// tagParser walks the subtags of a language tag.
type tagParser struct {
	rest, tag string
	more      bool // tag is a subtag that nobody took yet
}

// take moves to the next subtag; false when there is none.
func (p *tagParser) take() bool {
	if p.rest == "" {
		p.tag, p.more = "", false
		return false
	}
	i := strings.IndexByte(p.rest, '-')
	if i < 0 {
		p.tag, p.rest = p.rest, ""
	} else {
		p.tag, p.rest = p.rest[:i], p.rest[i+1:]
		if p.rest == "" {
			p.rest = "-" // a hyphen at the end: the next subtag is empty, which nothing takes
		}
	}
	p.more = true
	return true
}

// is reports whether the subtag is of least to most characters, letters only or letters and digits.
func (p *tagParser) is(least, most int, digitsToo bool) bool {
	if !p.more || len(p.tag) < least || len(p.tag) > most {
		return false
	}
	for i := range len(p.tag) {
		c := p.tag[i] | 0x20
		digit := p.tag[i] >= '0' && p.tag[i] <= '9'
		if letter := c >= 'a' && c <= 'z'; !letter && (!digit || !digitsToo) {
			return false
		}
	}
	return true
}

// language takes language, extended language, script and region.
func (p *tagParser) language() bool {
	if !p.is(2, 8, false) {
		return false
	}
	short := len(p.tag) <= 3
	p.take()
	for range 3 {
		if !short || !p.is(3, 3, false) {
			break
		}
		p.take()
	}
	if p.is(4, 4, false) {
		p.take()
	}
	if p.is(2, 2, false) || p.is(3, 3, true) && allDigits(p.tag) {
		p.take()
	}
	return true
}

func (p *tagParser) variant() bool {
	return p.is(5, 8, true) || p.is(4, 4, true) && p.tag[0] >= '0' && p.tag[0] <= '9'
}

// tail takes variants, extensions and private use; none of the first two may be there twice.
func (p *tagParser) tail() bool {
	var variants []string
	for ; p.variant(); p.take() {
		for _, v := range variants {
			if strings.EqualFold(v, p.tag) {
				return false
			}
		}
		variants = append(variants, p.tag)
	}
	singletons := ""
	for p.is(1, 1, true) && p.tag[0]|0x20 != 'x' {
		s := p.tag[0] | 0x20 // lower case; a digit has the bit already
		if strings.IndexByte(singletons, s) >= 0 {
			return false
		}
		singletons += string(rune(s))
		if p.take(); !p.is(2, 8, true) {
			return false
		}
		for p.is(2, 8, true) {
			p.take()
		}
	}
	if !p.more {
		return true
	}
	return p.is(1, 1, false) && p.tag[0]|0x20 == 'x' && p.private()
}

// private takes what follows an x.
func (p *tagParser) private() bool {
	n := 0
	for p.take() {
		if !p.is(1, 8, true) {
			return false
		}
		n++
	}
	return n > 0
}
