package migrations

import (
	"context"
	"io/fs"
	"time"
)

// UpFiles is Up with other files and another timeout.
func UpFiles(ctx context.Context, url string, files fs.FS, lockTimeout time.Duration) error {
	return up(ctx, url, files, lockTimeout)
}
