package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"storefront.internal/deploy/local/process"
)

// Home makes a folder that the server's user owns and can reach. Wanted is used when it can: as root the server runs as
// nobody, who cannot pass a private folder such as root's home on the way; then a folder below /var/tmp with a name derived
// from wanted takes its place, the same on every run.
func Home(wanted string) (string, error) {
	user := process.Nobody()
	dir := wanted
	if user != nil && !reachable(filepath.Dir(wanted)) {
		sum := sha256.Sum256([]byte(wanted))
		dir = filepath.Join("/var/tmp", "storefront-"+hex.EncodeToString(sum[:6]), filepath.Base(wanted))
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if user == nil {
		return dir, nil
	}
	if err := os.Chown(dir, int(user.UID), int(user.GID)); err != nil {
		return "", fmt.Errorf("give %s to the server's user: %w", dir, err)
	}
	return dir, nil
}

// reachable tells whether everybody may pass through every folder down to dir. A folder that is not there yet will be made
// passable.
func reachable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return true
		}
		dir = up
	}
}
