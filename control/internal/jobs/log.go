package jobs

import (
	"context"
	"log/slog"
)

// quietHandler passes on River's warnings and errors, not its notes on every fetch and election.
type quietHandler struct{ slog.Handler }

func quiet(logger *slog.Logger) *slog.Logger {
	return slog.New(quietHandler{logger.Handler()})
}

// Enabled implements slog.Handler.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
