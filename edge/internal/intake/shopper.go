package intake

import (
	"strconv"

	"storefront.internal/shared/ident"
)

// discards says which fields of a signal were malformed and left out.
type discards struct{ visitor, client bool }

// Bounds of client (contract, section 2).
const (
	maxPageURL    = 2048 // bytes
	maxLanguages  = 20
	maxViewport   = 100_000
	maxPixelRatio = 16
)

// visitor takes the shopper's ids, or discards them when one is malformed.
func (j *judging) visitor() {
	v := j.member(slotVisitor)
	if !v.given() {
		return
	}
	visitor, ok1 := j.shopperID(slotVisitorID, ident.Visitor)
	session, ok2 := j.shopperID(slotSessionID, ident.Session)
	if v.kind != object || !ok1 || !ok2 {
		j.out.discarded.visitor = true
		return
	}
	if visitor == "" && session == "" {
		return
	}
	j.out.visitor.VisitorID = ident.VisitorID(visitor)
	j.out.visitor.SessionID = ident.SessionID(session)
	j.out.signal.Visitor = &j.out.visitor
}

// shopperID reads an id that must not be a telephone number; absent is well-formed.
func (j *judging) shopperID(at slot, prefix ident.Prefix) (string, bool) {
	if !j.member(at).given() {
		return "", true
	}
	s, ok := j.storable(at)
	return s, ok && ident.Valid(prefix, s) && !telephone(s[len(prefix)+1:])
}

// telephone reports whether s is all digits, of the length of a telephone number.
func telephone(s string) bool {
	return len(s) >= 7 && len(s) <= 15 && allDigits(s)
}

// client takes the object as it was sent, or discards it whole when a member is malformed. Of one with members that
// are unknown or null, the others are kept: unknown members are ignored, and so are not stored either.
func (j *judging) client() {
	v := j.member(slotClient)
	if !v.given() {
		return
	}
	if v.kind != object || !j.pageURL() || !j.languages() || !j.timezone() || !j.viewport() {
		j.out.discarded.client = true
		return
	}
	if v.flags&surplus == 0 && j.member(slotViewport).flags&surplus == 0 {
		j.out.signal.Client = j.sc.b[v.start:v.end:v.end]
		return
	}
	j.out.signal.Client = j.compose(make([]byte, 0, v.end-v.start), slotPageURL, slotViewport)
}

// compose writes the object of the given members from first to last, as they were sent.
func (j *judging) compose(dst []byte, first, last slot) []byte {
	names := [slotsOfElement]string{slotPageURL: "page_url", slotLanguages: "languages", slotTimezone: "timezone",
		slotViewport: "viewport", slotWidth: "width", slotHeight: "height", slotPixelRatio: "pixel_ratio"}
	sep := byte('{')
	for at := first; at <= last; at++ {
		v := j.member(at)
		if !v.given() {
			continue
		}
		dst = append(append(append(dst, sep, '"'), names[at]...), '"', ':')
		sep = ','
		switch {
		case at == slotViewport:
			dst = j.compose(dst, slotWidth, slotPixelRatio)
		case v.kind == text:
			dst = append(dst, j.sc.b[v.start-1:v.end+1]...)
		default:
			dst = append(dst, j.sc.b[v.start:v.end]...)
		}
	}
	if sep == '{' {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

func (j *judging) pageURL() bool {
	if !j.member(slotPageURL).given() {
		return true
	}
	s, ok := j.storable(slotPageURL)
	return ok && len(s) <= maxPageURL && webURL(s)
}

func (j *judging) timezone() bool {
	if !j.member(slotTimezone).given() {
		return true
	}
	s, ok := j.storable(slotTimezone)
	if ok && s != "" && s == j.zone {
		return true
	}
	_, known := j.zones[s]
	if ok && known {
		j.zone = s
	}
	return ok && known
}

func (j *judging) languages() bool {
	v := j.member(slotLanguages)
	if !v.given() {
		return true
	}
	if v.kind != array {
		return false
	}
	sent := j.sc.s[v.start:v.end]
	if sent != j.spoken && !j.languageTags(v) {
		return false
	}
	j.spoken = sent
	return true
}

// languageTags reads the array once more: its grammar is known to be right.
func (j *judging) languageTags(v *value) bool {
	for i, n := int(v.start)+1, 0; ; {
		switch c := j.sc.b[i]; {
		case c == ']':
			return true
		case c == ',' || c <= ' ':
			i++
		case c != '"' || n == maxLanguages:
			return false
		default:
			end, flags, _ := scanText(j.sc.b, i+1)
			tag := value{kind: text, flags: flags, start: int32(i + 1), end: int32(end)}
			if flags&unstorable != 0 || !languageTag(j.sc.string(&tag)) {
				return false
			}
			i, n = end+1, n+1
		}
	}
}

func (j *judging) viewport() bool {
	v := j.member(slotViewport)
	if !v.given() {
		return true
	}
	return v.kind == object && j.pixels(slotWidth) && j.pixels(slotHeight) && j.pixelRatio()
}

func (j *judging) pixels(at slot) bool {
	if !j.member(at).given() {
		return true
	}
	_, ok := j.sc.integer(j.member(at), 1, maxViewport)
	return ok
}

func (j *judging) pixelRatio() bool {
	v := j.member(slotPixelRatio)
	if !v.given() {
		return true
	}
	if v.kind != number {
		return false
	}
	if v.flags&fractional == 0 {
		_, ok := j.sc.integer(v, 1, maxPixelRatio)
		return ok
	}
	f, err := strconv.ParseFloat(j.sc.s[v.start:v.end], 64)
	return err == nil && f > 0 && f <= maxPixelRatio
}
