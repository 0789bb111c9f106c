package webhook

import (
	"context"
	"log/slog"
	"time"

	"storefront.internal/control/internal/provider"
)

// Silence is how quiet the installed shops of a provider are.
type Silence struct {
	Provider string
	Longest  time.Duration // since a delivery of the most silent shop was taken
	Silent   int           // shops that are silent for longer than was asked
}

// SilenceStore knows when deliveries were taken.
type SilenceStore interface {
	// Silences returns one of each provider that has installed shops.
	Silences(ctx context.Context, after time.Duration) ([]Silence, error)
}

// silenceEvery is how old the gauges may be.
const silenceEvery = 30 * time.Second

// SilenceWatch keeps the gauges of silence. Webhooks that do not come leave no trace but this one.
type SilenceWatch struct {
	store     SilenceStore
	providers *provider.Registry
	after     time.Duration
	metrics   *Metrics
	logger    *slog.Logger
}

// NewSilenceWatch returns a watch that counts shops which are silent for longer than after.
func NewSilenceWatch(store SilenceStore, providers *provider.Registry, after time.Duration, metrics *Metrics, logger *slog.Logger) *SilenceWatch {
	return &SilenceWatch{store: store, providers: providers, after: after, metrics: metrics, logger: logger}
}

// Run keeps the gauges until the context ends.
func (w *SilenceWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(silenceEvery)
	defer tick.Stop()
	for {
		w.Look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look reads the gauges once.
func (w *SilenceWatch) Look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, silenceEvery)
	defer cancel()
	all, err := w.store.Silences(ctx, w.after)
	if err != nil {
		if ctx.Err() == nil {
			w.logger.Warn("the silence of shops cannot be read", "error", err.Error())
		}
		return
	}
	of := make(map[string]Silence, len(all))
	for _, s := range all {
		of[s.Provider] = s
	}
	for _, name := range w.providers.Names() {
		w.metrics.silence.WithLabelValues(name).Set(of[name].Longest.Seconds())
		w.metrics.silent.WithLabelValues(name).Set(float64(of[name].Silent))
	}
}
