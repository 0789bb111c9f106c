package deliver

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/shared/deliveries"
)

// TestRepliesAreLoggedSparingly: one line per interval, kind and answer; the next one has the number of
// replies left out.
func TestRepliesAreLoggedSparingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newReplyLog(slog.New(slog.NewTextHandler(&out, nil)))
		unavailable := Reply{Transmission: Answered, Status: 503}
		l.add(deliveries.Interaction, Reply{Transmission: Answered, Status: 200}, 5)
		for range 4 {
			l.add(deliveries.Interaction, unavailable, 5)
		}
		l.add(deliveries.Envelope, unavailable, 1)
		l.add(deliveries.Interaction, Reply{Err: errors.New("reset")}, 1)
		l.add(
			deliveries.Interaction,
			Reply{Transmission: Answered, Status: 200, Err: errors.New("no list")},
			1,
		)
		time.Sleep(replyLogInterval)
		l.add(deliveries.Interaction, unavailable, 5)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 5 || !strings.Contains(lines[4], "status=503") ||
			!strings.Contains(lines[4], "similar_not_logged=3") || !strings.Contains(lines[2], "reset") {
			t.Errorf("logged:\n%s", out.String())
		}
	})
}
