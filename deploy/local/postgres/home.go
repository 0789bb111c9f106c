package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"storefront.internal/deploy/local/process"
)

// Home makes a folder that the server's user owns and can reach, and returns its path: wanted, if that can be
// reached. As root, the server runs as an unprivileged user, who cannot pass a private folder such as root's
// home; then the folder lies below /var/tmp, with a name derived from wanted, so that it is the same on every
// run.
func Home(wanted string) (string, error) {
	user := process.Unprivileged()
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

// reachable reports whether every user may pass through all folders down to dir. Folders that do not exist
// yet do not count.
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
