// Package telemetry owns the JSON log, the metrics registry with its reference (METRICS.md), and the HTTP
// server of the operations port.
//
// It redacts the log: settings.Secret prints itself masked, and texts that look like a bearer token, a
// storefront key or the password of a URL are masked. Request bodies are never logged. There are no global
// loggers and registries: each service makes its own and passes them on.
package telemetry

import (
	"io"
	"log/slog"
	"regexp"
	"runtime/debug"
	"strings"
)

// NewLogger returns a logger of JSON lines that name the service and its version.
func NewLogger(w io.Writer, level slog.Leveler, service string) *slog.Logger {
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: redact})
	return slog.New(h).With("service", service, "version", Version())
}

// release is the version that the build of an image passes to the linker (-X), where no repository is at
// hand.
var release string //nolint:gochecknoglobals // the linker can only set variables

// Version returns the version of the running binary: the release, a tag, or the commit.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value
		}
	}
	if version == "" {
		return "unknown"
	}
	return version
}

// secretText matches the credential of an Authorization header, a storefront key, and the password of a URL.
var secretText = regexp.MustCompile(`(?i)\bbearer\s+[^\s"]+|\bspk_[A-Za-z0-9]+|://[^/\s:@]*:[^/\s@]+@`)

func redact(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Redact(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok && err != nil {
			a.Value = slog.StringValue(Redact(err.Error()))
		}
	}
	return a
}

// Redact masks credentials in a text.
func Redact(s string) string {
	if !strings.Contains(s, "spk_") && !strings.Contains(s, "://") &&
		!strings.Contains(strings.ToLower(s), "bearer") {
		return s
	}
	return secretText.ReplaceAllString(s, "***")
}
