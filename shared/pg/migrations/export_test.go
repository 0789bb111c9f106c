package migrations

import (
	"context"
	"io/fs"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
)

// UpFiles is Up with other files and another timeout.
func UpFiles(ctx context.Context, url string, files fs.FS, lockTimeout time.Duration) error {
	return up(ctx, url, files, nil, lockTimeout)
}

// UpTo runs the files up to a number, as a release that has no more.
func UpTo(ctx context.Context, url string, last int64) error {
	some := fstest.MapFS{}
	names, err := fs.Glob(files, "*.sql")
	for _, name := range names {
		if n, _ := goose.NumericComponent(name); err == nil && n <= last {
			var text []byte
			text, err = files.ReadFile(name)
			some[name] = &fstest.MapFile{Data: text}
		}
	}
	if err != nil {
		return err
	}
	return up(ctx, url, some, nil, lockTimeout)
}
