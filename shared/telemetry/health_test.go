package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestHealthy(t *testing.T) {
	t.Parallel()
	admin := NewAdmin(AdminConfig{Listen: "127.0.0.1:0", Gatherer: prometheus.NewRegistry(),
		Logger: slog.New(slog.DiscardHandler)})
	var down atomic.Bool
	admin.AddCheck("store", func(context.Context) error {
		if down.Load() {
			return errors.New("away")
		}
		return nil
	})
	if err := admin.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := []string{"OTHER_ADMIN_LISTEN=x", "TEST_ADMIN_LISTEN=" + admin.Addr()}
	if err := Healthy(t.Context(), "TEST", env); err != nil {
		t.Error(err)
	}
	_, port, _ := strings.Cut(admin.Addr(), ":")
	for _, all := range []string{":", "0.0.0.0:"} {
		if err := Healthy(t.Context(), "TEST", []string{"TEST_ADMIN_LISTEN=" + all + port}); err != nil {
			t.Error(err)
		}
	}
	down.Store(true)
	if err := Healthy(t.Context(), "TEST", env); err == nil || !strings.Contains(err.Error(), "store: away") {
		t.Errorf("not ready: %v", err)
	}
	if err := admin.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := Healthy(t.Context(), "TEST", env); err == nil {
		t.Error("healthy without a listener")
	}
	if err := Healthy(t.Context(), "TEST", []string{"TEST_ADMIN_LISTEN=x"}); err == nil ||
		!strings.Contains(err.Error(), "TEST_ADMIN_LISTEN") {
		t.Errorf("a wrong address: %v", err)
	}
}
