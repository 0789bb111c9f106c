// Command archive writes an OCI archive of one layer from a folder, for images that no registry gives.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	user := flag.String("user", "65532:65532", "user of the image")
	flag.Parse()
	if flag.NArg() < 3 {
		fmt.Fprintln(os.Stderr, "usage: archive [-user U] OUT.tar NAME:TAG FOLDER [ENTRYPOINT…]")
		os.Exit(2)
	}
	if err := write(flag.Arg(0), flag.Arg(1), flag.Arg(2), *user, flag.Args()[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

// object is any JSON object of the OCI image format.
type object map[string]any

const vendor = "application/vnd.oci.image."

func write(out, name, folder, user string, entrypoint []string) error {
	layer, err := pack(folder)
	if err != nil {
		return err
	}
	_, tag, ok := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if !ok {
		return fmt.Errorf("%s has no tag", name)
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	add := func(kind string, content []byte) object {
		sum := sha256.Sum256(content)
		files["blobs/sha256/"+hex.EncodeToString(sum[:])] = content
		return object{"mediaType": vendor + kind, "digest": "sha256:" + hex.EncodeToString(sum[:]),
			"size": len(content)}
	}
	data := add("layer.v1.tar", layer)
	config := add("config.v1+json", encode(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"rootfs": object{"type": "layers", "diff_ids": []any{data["digest"]}},
		"config": object{"User": user, "Entrypoint": entrypoint, "WorkingDir": "/",
			"Env": []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}},
	}))
	manifest := add("manifest.v1+json", encode(object{"schemaVersion": 2, "config": config,
		"layers": []any{data}, "mediaType": vendor + "manifest.v1+json"}))
	manifest["annotations"] = object{"io.containerd.image.name": name,
		"org.opencontainers.image.ref.name": tag}
	files["index.json"] = encode(object{"schemaVersion": 2, "mediaType": vendor + "index.v1+json",
		"manifests": []any{manifest}})
	return save(out, files)
}

func encode(o object) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // only strings and numbers are in it
	}
	return text
}

// pack returns the folder as a layer. Everything belongs to root.
func pack(folder string) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		return packFile(w, folder, path, e)
	})
	return layer.Bytes(), errors.Join(err, w.Close())
}

func packFile(w *tar.Writer, folder, path string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	target := ""
	if e.Type() == fs.ModeSymlink {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(folder, path)
	if err != nil {
		return err
	}
	header.Name = name
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}

func save(out string, files map[string][]byte) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return errors.Join(err, f.Close())
		}
		if _, err := w.Write(content); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Close(), f.Close())
}
