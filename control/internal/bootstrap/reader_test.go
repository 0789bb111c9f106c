package bootstrap

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/control/internal/shop"
	"storefront.internal/shared/catalog"
)

// counter numbers fetches.
type counter struct {
	Store
	last atomic.Int64
}

func (c *counter) NextFetchSeq(context.Context) (int64, error) { return c.last.Add(1), nil }

// slow is a shop whose pages take a second each. The entity of a page is named after its cursor.
type slow struct {
	provider.Adapter
	asked atomic.Int64
}

func (s *slow) Page(ctx context.Context, _ provider.Shop, e catalog.Entity, _ time.Time,
	c provider.Cursor) (provider.Page, error) {
	s.asked.Add(1)
	select {
	case <-time.After(time.Second):
		return provider.Page{Items: []provider.Fetched{{Entity: e, ExternalID: string(c)}}}, nil
	case <-ctx.Done():
		return provider.Page{}, ctx.Err()
	}
}

func newSlow(t *testing.T) (*reader, *slow) {
	of := &slow{}
	r := newReader(t.Context(), &counter{}, shop.Opened{Adapter: of})
	return r, of
}

func wantPage(t *testing.T, r *reader, e catalog.Entity, c provider.Cursor, fetchSeq int64,
	within time.Duration) {
	t.Helper()
	began := time.Now()
	page, n, err := r.read(e, c)
	if err != nil || n != fetchSeq || page.Items[0].Entity != e || page.Items[0].ExternalID != string(c) {
		t.Errorf("page %q of %s: %+v, number %d, %v; want number %d", c, e, page, n, err, fetchSeq)
	}
	if took := time.Since(began); took != within {
		t.Errorf("page %q took %v, want %v", c, took, within)
	}
}

// A page that was requested ahead is returned when it is needed, with the fetch sequence number that was
// taken before its request. A page that is not needed is never returned for another cursor.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, of := newSlow(t)
		defer r.close()
		wantPage(t, r, catalog.Product, "a", 1, time.Second)
		r.prefetch(catalog.Product, "b")
		time.Sleep(3 * time.Second) // the page before it is saved
		wantPage(t, r, catalog.Product, "b", 2, 0)
		r.prefetch(catalog.Product, "c")
		wantPage(t, r, catalog.Category, "c", 4, 2*time.Second)
		if n := of.asked.Load(); n != 4 {
			t.Errorf("%d pages were asked for", n)
		}
	})
}

// A worker that ends leaves no call running.
func TestReadAheadEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, of := newSlow(t)
		r.prefetch(catalog.Product, "a")
		synctest.Wait()
		began := time.Now()
		r.close()
		if of.asked.Load() != 1 || time.Since(began) != 0 {
			t.Errorf("%d asked, the end took %v", of.asked.Load(), time.Since(began))
		}
		if _, _, err := r.read(catalog.Product, "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("a page behind the end: %v", err)
		}
	})
}

// broken is a shop whose adapter panics.
type broken struct{ provider.Adapter }

func (broken) Page(context.Context, provider.Shop, catalog.Entity, time.Time,
	provider.Cursor) (provider.Page, error) {
	panic("broken")
}

// An adapter's panic ends the job that reads, which recovers it, and not the process.
func TestReadAheadPanics(t *testing.T) {
	t.Parallel()
	r := newReader(t.Context(), &counter{}, shop.Opened{Adapter: broken{}})
	defer r.close()
	defer func() {
		if got := recover(); got != "broken" {
			t.Errorf("recovered %v", got)
		}
	}()
	_, _, err := r.read(catalog.Product, "a")
	t.Errorf("read: %v", err)
}
