// Package web builds the browser SDK (edge/sdk) with esbuild as a library, so that it takes Go and nothing
// else.
package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/js"
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

// Version is that of the SDK whose folder is dir.
func Version(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return "", fmt.Errorf("package.json: %w", err)
	}
	if p.Version == "" {
		return "", errors.New("package.json names no version")
	}
	return p.Version, nil
}

// ServedDir is the folder of the files of a version that the edge serves, in the repository at root.
func ServedDir(root, version string) string {
	return filepath.Join(root, "edge", "internal", "sdkfiles", "files", version)
}

// Read reads the files of a folder.
func Read(dir string) (Files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := Files{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Write writes the files into a folder, and removes what else is there.
func (f Files) Write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, code := range f {
		if err := os.WriteFile(filepath.Join(dir, name), code, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ScriptPath is the path of a file at an edge.
func ScriptPath(version, name string) string { return "/v1/sdk/" + version + "/" + name }

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
	return rename(result.OutputFiles[0].Contents)
}

// rename gives variables the names that compress best. Those of esbuild differ from function to function,
// which costs a fiftieth of the core.
func rename(code []byte) ([]byte, error) {
	var out bytes.Buffer
	minifier := js.Minifier{Version: 2020}
	if err := minifier.Minify(minify.New(), &out, bytes.NewReader(code), nil); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
