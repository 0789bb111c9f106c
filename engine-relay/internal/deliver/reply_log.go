package deliver

import (
	"log/slog"
	"time"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/telemetry"
)

// replyLogInterval is the shortest time between two log lines about the same kind and answer.
const replyLogInterval = 10 * time.Second

// replyLog logs replies that are no success. During an outage it writes one line per interval, kind and
// answer, with the number of replies that it left out.
type replyLog struct {
	log      *slog.Logger
	throttle *telemetry.Throttle[replyKind]
}

// replyKind is what replies have in common that are logged once per interval.
type replyKind struct {
	kind  deliveries.Kind
	label string
}

func newReplyLog(log *slog.Logger) *replyLog {
	return &replyLog{log: log, throttle: telemetry.NewThrottle[replyKind](replyLogInterval, 1)}
}

func (l *replyLog) add(k deliveries.Kind, r Reply, size int) {
	label := answerLabel(r)
	if label == "2xx" && r.Err == nil {
		return
	}
	l.throttle.Log(l.log, slog.LevelWarn, replyKind{k, label}, "the engine did not accept a request",
		slog.String("kind", k.String()), slog.String("answer", label), slog.Int("status", r.Status),
		slog.Duration("retry_after", r.RetryAfter), slog.Int("deliveries", size), slog.Any("error", r.Err))
}
