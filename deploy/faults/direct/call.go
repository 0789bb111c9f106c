package direct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/history"
)

// patience is how long a client waits for an answer: longer than an edge that was stopped on purpose stands still.
const patience = 45 * time.Second

// do makes one call and says how it ended: Fail where certainly nothing was done, OK for an answer that was read whole.
func (s *Shop) do(ctx context.Context, op history.Op, method, url, token string, body []byte) (history.Event, []byte) {
	end := history.Event{Op: op, Kind: history.Info}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		end.Kind, end.Error = history.Fail, err.Error()
		return end, nil
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		end.Error = err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) {
			end.Kind = history.Fail
		}
		return end, nil
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	end.Status, end.RequestID = answer.StatusCode, answer.Header.Get("X-Request-Id")
	switch {
	case err != nil:
		end.Error = err.Error()
	case answer.StatusCode < 300:
		end.Kind = history.OK
	default:
		var problem struct {
			Code string `json:"code"`
		}
		_ = json.Unmarshal(text, &problem) // a status without a problem is recorded all the same
		end.Code = problem.Code
		if answer.StatusCode < 500 {
			end.Kind = history.Fail
		}
	}
	return end, text
}
