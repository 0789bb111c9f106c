package shop

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
)

func pictureURL(itemID string) string { return "/picture/" + itemID + ".svg" }

// picture draws a picture of an item from its id: no network is needed, and the same item always looks the
// same.
func picture(w http.ResponseWriter, r *http.Request) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.TrimSuffix(r.PathValue("item"), ".svg"))) // never fails
	n := h.Sum32()
	hue, turn := n%360, n>>9%90
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 120">`+
		`<rect width="120" height="120" fill="hsl(%d 55%% 88%%)"/>`+
		`<g transform="rotate(%d 60 60)" fill="hsl(%d 60%% 45%%)">%s</g>`+
		`<circle cx="%d" cy="%d" r="%d" fill="hsl(%d 70%% 60%%)"/></svg>`,
		hue, turn, hue, shape(n>>3), 40+n>>5%40, 40+n>>11%40, 8+n>>17%12, (hue+150)%360)
}

func shape(n uint32) string {
	shapes := [...]string{
		`<rect x="30" y="30" width="60" height="60" rx="8"/>`,
		`<path d="M60 22 98 92H22Z"/>`,
		`<path d="M60 20 95 45 82 90H38L25 45Z"/>`,
		`<rect x="22" y="44" width="76" height="32" rx="16"/>`,
		`<path d="M30 30h60v20H70v45H50V50H30Z"/>`,
	}
	return shapes[n%uint32(len(shapes))]
}
