package telemetry

import (
	"context"
	"fmt"
	"log/slog"
)

// DriverLog lets a driver that prints lines of its own (go-redis does, to stderr) speak through the service's log.
// Such a driver has one log per process, so a program hands it over once, before it opens a client.
type DriverLog struct {
	Logger *slog.Logger
	Driver string
}

// Printf is what go-redis asks of a logger.
func (d DriverLog) Printf(ctx context.Context, format string, args ...any) {
	d.Logger.WarnContext(ctx, "driver", slog.String("driver", d.Driver), slog.String("message", Redact(fmt.Sprintf(format, args...))))
}
