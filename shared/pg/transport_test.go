package pg

import (
	"bytes"
	"log/slog"
	"testing"

	"storefront.internal/shared/settings"
)

func TestWarnOfTransport(t *testing.T) {
	for url, warns := range map[string]bool{
		"postgres://u:secret@db.example/d?sslmode=verify-full":                  false,
		"postgres://u:secret@db.example/d?sslmode=verify-ca&sslrootcert=system": false, // implies verify-full
		"postgres://u:secret@db.example/d?sslmode=require":                      true,
		"postgres://u:secret@db.example/d?sslmode=prefer":                       true,
		"postgres://u:secret@db.example/d?sslmode=disable":                      true,
		"postgres://u:secret@db.example/d":                                      true, // prefer
		"postgres://u:secret@127.0.0.1,db.example/d?sslmode=disable":            true,
		"postgres://u:secret@127.0.0.1/d?sslmode=disable":                       false,
		"postgres://u:secret@[::1]/d?sslmode=disable":                           false,
		"postgres://u:secret@localhost/d":                                       false,
		"host=/run/postgresql user=u sslmode=disable":                           false,
		"not a url": false, // Open refuses it
	} {
		var log bytes.Buffer
		WarnOfTransport(settings.Postgres{DatabaseURL: settings.Secret(url)},
			slog.New(slog.NewTextHandler(&log, nil)))
		if (log.Len() > 0) != warns || bytes.Contains(log.Bytes(), []byte("secret")) {
			t.Errorf("%s: %s", url, log.String())
		}
	}
}
