package services

import (
	"context"
	"os"
)

// EnsureKeyset makes the keyset that seals what control keeps secret, when the file is not there yet. Without the file
// everything sealed is lost, so it is never replaced.
func (s Settings) EnsureKeyset(ctx context.Context) error {
	if _, err := os.Stat(s.KeysetFile); err == nil {
		return nil
	}
	keyset, err := s.Once(ctx, nil, "keyset", "new")
	if err != nil {
		return err
	}
	return os.WriteFile(s.KeysetFile, keyset, 0o600)
}
