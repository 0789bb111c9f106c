package signalrules

import (
	"bytes"

	"storefront.internal/edge/internal/signaljson"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// Limits of client.
const (
	// bytes of the object as it was sent: four times what a browser has to say. It is stored with every
	// signal, and white space, the digits of a number and unknown members have no bound of their own.
	maxClient     = 4096
	maxPageURL    = 2048 // bytes
	maxLanguages  = 20
	maxViewport   = 100_000
	maxPixelRatio = 16
)

// visitor keeps the shopper's ids, or discards both when the object or one of them is malformed.
func (v *Validator) visitor() {
	value := v.element.Member(signaljson.Visitor)
	if !value.Present() {
		return
	}
	visitor, ok1 := v.shopperID(signaljson.VisitorID, ident.Visitor)
	session, ok2 := v.shopperID(signaljson.SessionID, ident.Session)
	if value.Kind != signaljson.Object || !ok1 || !ok2 {
		v.out.DiscardedVisitor = true
		return
	}
	if visitor == "" && session == "" {
		return
	}
	v.out.visitor.VisitorID = ident.VisitorID(visitor)
	v.out.visitor.SessionID = ident.SessionID(session)
	v.out.Signal.Visitor = &v.out.visitor
}

// shopperID returns an id that must not look like a telephone number; absent is valid.
func (v *Validator) shopperID(m signaljson.Member, prefix ident.Prefix) (string, bool) {
	if !v.present(m) {
		return "", true
	}
	s, ok := v.text(m)
	return s, ok && ident.Valid(prefix, s) && !telephone(s[len(prefix)+1:])
}

// client keeps the object as it was sent, or discards it whole when a member is malformed or it is too long.
// When it has
// members that are unknown or null, the object is written again without them, so that they are not stored.
func (v *Validator) client() {
	value := v.element.Member(signaljson.Client)
	if !value.Present() {
		return
	}
	if value.Kind != signaljson.Object || len(v.decoder.Raw(value)) > maxClient || !v.pageURL() ||
		!v.languages() || !v.timezone() || !v.viewport() {
		v.out.DiscardedClient = true
		return
	}
	v.out.Signal.Client = v.decoder.Raw(value)
	if value.HasExtra() || v.element.Member(signaljson.Viewport).HasExtra() {
		dst := make([]byte, 0, len(v.out.Signal.Client))
		v.out.Signal.Client = v.appendObject(dst, signaljson.PageURL, signaljson.Viewport)
	}
}

// appendObject appends an object of the members from first to last that are present, as they were sent.
func (v *Validator) appendObject(dst []byte, first, last signaljson.Member) []byte {
	names := [...]string{signaljson.PageURL: "page_url", signaljson.Languages: "languages",
		signaljson.Timezone: "timezone", signaljson.Viewport: "viewport", signaljson.Width: "width",
		signaljson.Height: "height", signaljson.PixelRatio: "pixel_ratio"}
	separator := byte('{')
	for m := first; m <= last; m++ {
		if !v.present(m) {
			continue
		}
		dst = append(append(append(dst, separator, '"'), names[m]...), '"', ':')
		separator = ','
		if m == signaljson.Viewport {
			dst = v.appendObject(dst, signaljson.Width, signaljson.PixelRatio)
		} else {
			dst = append(dst, v.decoder.Raw(v.element.Member(m))...)
		}
	}
	if separator == '{' {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

func (v *Validator) pageURL() bool {
	if !v.present(signaljson.PageURL) {
		return true
	}
	s, ok := v.text(signaljson.PageURL)
	return ok && len(s) <= maxPageURL && webURL(s)
}

func (v *Validator) timezone() bool {
	if !v.present(signaljson.Timezone) {
		return true
	}
	s, ok := v.text(signaljson.Timezone)
	if !ok || s == v.lastTimezone && s != "" {
		return ok
	}
	_, known := v.timezones[s]
	if known {
		v.lastTimezone = s
	}
	return known
}

func (v *Validator) languages() bool {
	value := v.element.Member(signaljson.Languages)
	if !value.Present() {
		return true
	}
	if value.Kind != signaljson.Array {
		return false
	}
	sent := v.decoder.Raw(value)
	if !bytes.Equal(sent, v.lastLanguages) &&
		!v.decoder.StringsValid(value, maxLanguages, catalog.ValidLanguage) {
		return false
	}
	v.lastLanguages = sent
	return true
}

func (v *Validator) viewport() bool {
	value := v.element.Member(signaljson.Viewport)
	if !value.Present() {
		return true
	}
	return value.Kind == signaljson.Object && v.pixels(signaljson.Width) && v.pixels(signaljson.Height) &&
		v.pixelRatio()
}

func (v *Validator) pixels(m signaljson.Member) bool {
	if !v.present(m) {
		return true
	}
	_, ok := v.decoder.Integer(v.element.Member(m), 1, maxViewport)
	return ok
}

func (v *Validator) pixelRatio() bool {
	if !v.present(signaljson.PixelRatio) {
		return true
	}
	return v.decoder.Positive(v.element.Member(signaljson.PixelRatio), maxPixelRatio)
}
