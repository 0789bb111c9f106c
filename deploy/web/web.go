// Package web builds the browser SDK (edge/sdk) with esbuild as a library, so that it takes Go and nothing
// else.
package web

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Files are built files by name, for example storefront.iife.js.
type Files map[string][]byte

// entries are the parts of the SDK by name, with their module. Each becomes a script that adds itself to
// window.Storefront, and a module.
var entries = map[string]string{ //nolint:gochecknoglobals // Go has no constant maps
	"storefront": "index.ts",
	"auto":       "auto.ts",
	"element":    "element.ts",
	"debug":      "debug.ts",
}

// Build bundles and minifies the SDK whose folder is dir.
func Build(dir string) (Files, error) {
	files := Files{}
	for name, source := range entries {
		for suffix, in := range map[string]string{".iife.js": "iife/" + name + ".ts", ".mjs": source} {
			code, err := bundle(filepath.Join(dir, "src", in), suffix)
			if err != nil {
				return nil, fmt.Errorf("build %s%s: %w", name, suffix, err)
			}
			files[name+suffix] = code
		}
	}
	return files, nil
}

func bundle(entry, suffix string) ([]byte, error) {
	format := api.FormatESModule
	if suffix == ".iife.js" {
		format = api.FormatIIFE
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Format: format, Target: api.ES2020,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		MangleProps: "[^_]_$", Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		TsconfigRaw: "{}",
	})
	if len(result.Errors) > 0 {
		messages := api.FormatMessages(result.Errors, api.FormatMessagesOptions{})
		return nil, errors.New(strings.Join(messages, ""))
	}
	return result.OutputFiles[0].Contents, nil
}
