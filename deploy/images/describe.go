package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/ko/pkg/build"
)

// made describes an image.
type made struct {
	platform         string
	digest           v1.Hash
	stored, unpacked int64
}

// describe describes the images of a result and, with -root, unpacks that of this machine's platform.
func (o order) describe(result build.Result, module string) ([]made, error) {
	if image, ok := result.(v1.Image); ok {
		m, err := o.one(image, module)
		return []made{m}, err
	}
	index, ok := result.(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("neither an image nor an index: %T", result)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var all []made
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		m, err := o.one(image, module)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func (o order) one(image v1.Image, module string) (made, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return made{}, err
	}
	m := made{platform: config.OS + "/" + config.Architecture}
	if config.Config.User != user {
		return made{}, fmt.Errorf("the image's user is %q, not %s", config.Config.User, user)
	}
	if m.digest, err = image.Digest(); err != nil {
		return made{}, err
	}
	layers, err := image.Layers()
	if err != nil {
		return made{}, err
	}
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return made{}, err
		}
		m.stored += size
	}
	root := ""
	if o.root != "" && m.platform == here() {
		root = filepath.Join(o.root, module)
		if err := os.RemoveAll(root); err != nil {
			return made{}, err
		}
	}
	files := mutate.Extract(image)
	m.unpacked, err = unpack(files, root)
	return m, errors.Join(err, files.Close())
}

// unpack returns the size of all files and, unless root is empty, writes them to root.
func unpack(from io.Reader, root string) (int64, error) {
	var sum int64
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		sum += h.Size
		if root != "" {
			if err := writeEntry(h, r, root); err != nil {
				return sum, err
			}
		}
	}
}

func writeEntry(h *tar.Header, r io.Reader, root string) error {
	name := strings.TrimPrefix(h.Name, "/")
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s is outside of the image", h.Name)
	}
	path := filepath.Join(root, name)
	switch h.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeReg:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, h.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	default:
		return fmt.Errorf("%s has the type %q, but images have only files and folders", h.Name, h.Typeflag)
	}
}
