package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Budgets are the greatest sizes, gzipped, of the scripts that shops load.
var Budgets = map[string]int{ //nolint:gochecknoglobals // Go has no constant maps
	"storefront.iife.js": 4608,
	"auto.iife.js":       1500,
	"element.iife.js":    2500,
}

// Goal is the size that storefront.iife.js should have.
const Goal = 4096

// anchors are the sizes of the published bundles of others, by gzip -9 (November 2026).
const anchors = "Algolia search-insights 3,691 · Recombee 13,975 · Snowplow 17,385 · " +
	"Segment 30,003 · PostHog 53,972"

// Gzipped is the size of a file as servers send it.
func Gzipped(code []byte) int {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one
	_, _ = z.Write(code)                                  // a buffer takes everything
	_ = z.Close()
	return b.Len()
}

// Integrity is the value of a script's integrity attribute (SRI).
func Integrity(code []byte) string {
	sum := sha512.Sum384(code)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Tag is the script element of a file of a version, at an edge with a base URL.
func (f Files) Tag(base, version, name string) string {
	return fmt.Sprintf("<script src=\"%s\"\n  integrity=\"%s\"\n  crossorigin=\"anonymous\"></script>",
		base+ScriptPath(version, name), Integrity(f[name]))
}

// Report prints the sizes beside those of others. It fails when a script is above its budget.
func (f Files) Report(w io.Writer) error {
	var err error
	for _, name := range slices.Sorted(maps.Keys(f)) {
		size := Gzipped(f[name])
		fmt.Fprintf(w, "%-20s %6d bytes gzipped  %s\n", name, size, Integrity(f[name]))
		if budget := Budgets[name]; budget > 0 && size > budget {
			err = fmt.Errorf("%s has %d bytes gzipped, %d are allowed", name, size, budget)
		}
	}
	if over := Gzipped(f["storefront.iife.js"]) - Goal; over > 0 {
		fmt.Fprintf(w, "The goal of storefront.iife.js, %d bytes, is missed by %d.\n", Goal, over)
	}
	fmt.Fprintf(w, "Others: %s\n", anchors)
	return err
}
