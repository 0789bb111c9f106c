package telemetry

import (
	"context"
	"fmt"
	"log/slog"
)

// DriverLog passes the messages of a driver that prints lines itself (go-redis writes to stderr) to the log
// of the service. Such a driver has one logger per process, so a program sets it once, before it opens a
// client.
type DriverLog struct {
	Logger *slog.Logger
	Driver string
}

// Printf implements the logger interface of go-redis.
func (d DriverLog) Printf(ctx context.Context, format string, args ...any) {
	d.Logger.WarnContext(ctx, "driver", slog.String("driver", d.Driver),
		slog.String("message", Redact(fmt.Sprintf(format, args...))))
}
