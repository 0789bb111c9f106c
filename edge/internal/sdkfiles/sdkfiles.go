// Package sdkfiles holds the built files of the browser SDK (edge/sdk), so that an edge can serve them. Each
// version has a folder: `make sdk` writes the one that edge/sdk/package.json names, and a version that was
// released stays as it is, because shops refer to it with the hash of its files.
package sdkfiles

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"
)

//go:embed files
var embedded embed.FS

// File is one file, plain and compressed.
type File struct {
	Body, Gzip []byte
	// ETag is the entity tag of either, in quotes.
	ETag []byte
}

// Files are the files by "<version>/<name>".
type Files map[string]*File

// Load compresses the files of all versions.
func Load() (Files, error) {
	files := Files{}
	err := fs.WalkDir(embedded, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(path)
		if err != nil {
			return err
		}
		compressed, err := compress(body)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[strings.TrimPrefix(path, "files/")] = &File{Body: body, Gzip: compressed,
			ETag: []byte(`"` + hex.EncodeToString(sum[:16]) + `"`)}
		return nil
	})
	return files, err
}

func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
