package kafka

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed pom.xml
var pom []byte

// ErrUnavailable says why a real broker cannot run here.
var ErrUnavailable = errors.New("no Kafka broker here")

// Fetch returns a folder below dir with the broker's class path. Maven copies it there once; the name of the
// folder follows from the dependency file, so that a new version gets a new folder.
func Fetch(ctx context.Context, dir string) (libs string, err error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("%w: java is not on PATH", ErrUnavailable)
	}
	sum := sha256.Sum256(pom)
	libs = filepath.Join(dir, hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(libs); err == nil {
		return libs, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", fmt.Errorf("%w: mvn is not on PATH and nothing is cached in %s", ErrUnavailable, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return libs, download(ctx, dir, libs)
}

// download fills a folder of its own and renames it, so that an interrupted download leaves no folder that
// looks complete.
func download(ctx context.Context, dir, libs string) error {
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return err
	}
	jars := filepath.Join(work, "jars")
	cmd := exec.CommandContext(ctx, "mvn", "--batch-mode", "--quiet", "-f", filepath.Join(work, "pom.xml"),
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch the Kafka broker by Maven: %w\n%s", err, out)
	}
	if err := os.Chmod(jars, 0o755); err != nil {
		return err
	}
	err = os.Rename(jars, libs)
	if _, there := os.Stat(libs); there == nil {
		return nil // also when another process was faster
	}
	return err
}
