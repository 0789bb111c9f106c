package payload

import (
	"net/url"
	"strings"

	"storefront.internal/shared/catalog"
)

// Link returns a URL in the form that the catalog takes: absolute, http or https, without credentials. A
// missing scheme becomes https; spaces and letters outside ASCII are escaped. It returns "" for any other
// text, so that a broken picture does not quarantine its product.
func Link(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "//") {
		text = "https:" + text
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil {
		return ""
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	const longest = 2048
	if text = u.String(); len(text) > longest || strings.ContainsAny(text, " \t\r\n\x7f") {
		return ""
	}
	return text
}

// Picture is a picture of an item.
type Picture struct {
	URL string
	Alt catalog.LocalizedText
}

// Media returns the pictures with a usable URL; the first one is primary. media is nil only when list is nil.
func Media(list []Picture) (media []catalog.Media, primary *catalog.Media) {
	if list == nil {
		return nil, nil
	}
	media = make([]catalog.Media, 0, len(list))
	for _, p := range list {
		if link := Link(p.URL); link != "" {
			media = append(media, catalog.Media{URL: link, Alt: p.Alt})
		}
	}
	if len(media) > 0 {
		first := media[0]
		primary = &first
	}
	return media, primary
}
