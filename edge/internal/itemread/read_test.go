package itemread

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"storefront.internal/shared/fault"
)

func TestMemoryThenRedisThenPostgres(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 3, false, false)
		expect(t, r, mine, 3)
		synctest.Wait() // the fill
		s.expectLookups(t, 1, 1)
		expect(t, r, mine, 3)
		s.expectLookups(t, 0, 0)
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 3)
		s.expectLookups(t, 1, 0)
	})
}

// A change is seen with its hint, and without one at the end of the TTL.
func TestChangeIsSeen(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, true)
		expect(t, r, mine, 1)
		s.change(mine, 2, false, true)
		expect(t, r, mine, 1)
		r.Changed(mine, 1) // an old hint
		r.Changed(Key{"con_2", "itm_1"}, 2)
		s.expectLookups(t, 1, 1)
		expect(t, r, mine, 1)
		r.Changed(mine, 2)
		expect(t, r, mine, 2)
		s.change(mine, 3, false, true)
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 3)
		s.change(mine, 4, true, true)
		r.Changed(mine, 4)
		expect(t, r, mine, 0)
	})
}

// A load that read before a change is not kept when the hint arrived meanwhile.
func TestHintDuringALoad(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, false)
		s.before = func() {
			s.set(func() { s.before = nil })
			s.change(mine, 2, false, true)
			r.Changed(mine, 2)
		}
		expect(t, r, mine, 1) // it was current when it was read
		expect(t, r, mine, 2)
	})
}

func TestMissingIsCachedForASecond(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		for range 50 {
			expect(t, r, mine, 0)
		}
		s.expectLookups(t, 1, 1)
		s.change(mine, 1, false, true)
		expect(t, r, mine, 0)
		time.Sleep(time.Second)
		expect(t, r, mine, 1)
		other := Key{"con_1", "itm_2"}
		expect(t, r, other, 0)
		s.change(other, 1, false, true)
		r.Changed(other, 1)
		expect(t, r, other, 1)
		s.change(mine, 2, true, true)
		time.Sleep(5 * time.Second)
		expect(t, r, mine, 0)
		s.change(mine, 3, false, true)
		time.Sleep(time.Second)
		expect(t, r, mine, 3)
	})
}

// An item of another connection takes the same steps as a missing one, whatever memory and Redis hold.
func TestForeignIsMissing(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, true)
		expect(t, r, mine, 1)
		s.expectLookups(t, 1, 1)
		answers := map[string]error{}
		for name, k := range map[string]Key{"foreign": {"con_2", "itm_1"}, "missing": {"con_2", "itm_9"}} {
			for _, looks := range []int{1, 0} {
				_, err := read(t, r, k)
				answers[name] = err
				s.expectLookups(t, looks, looks)
			}
			time.Sleep(time.Second)
			expect(t, r, k, 0)
			s.expectLookups(t, 1, 1)
		}
		s.change(Key{"con_1", "itm_8"}, 4, true, true)
		expect(t, r, Key{"con_1", "itm_8"}, 0)
		_, deleted := read(t, r, Key{"con_1", "itm_8"})
		for name, err := range answers {
			if err.Error() != deleted.Error() || fault.From(err).Err != nil {
				t.Errorf("%s: %v, a deleted one: %v", name, err, deleted)
			}
		}
	})
}

func TestOneLoadForManyReaders(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, false)
		s.before = func() { time.Sleep(10 * time.Millisecond) }
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { expect(t, r, mine, 1) })
		}
		wg.Wait()
		s.expectLookups(t, 1, 1)
	})
}

func TestReaderThatGivesUpDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, false)
		s.before = func() { time.Sleep(time.Second) }
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := r.Read(ctx,
				Request{ConnectionID: mine.Connection, ItemID: mine.Item}); !fault.Is(err,
				fault.ServiceUnavailable) {
				t.Errorf("error %v", err)
			}
		})
		time.Sleep(5 * time.Millisecond)
		expect(t, r, mine, 1)
		wg.Wait()
		s.expectLookups(t, 1, 1)
	})
}

func TestPanicInALookUpIsAnError(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.set(func() { s.panics = true })
		expect(t, r, mine, -1)
		if testutil.ToFloat64(r.cfg.Metrics.panics) == 0 {
			t.Error("the panic is not counted")
		}
		s.set(func() { s.panics = false })
		s.change(mine, 1, false, false)
		expect(t, r, mine, 1)
	})
}

func TestCompressedCopyIsMadeOnce(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stores, r *Service) {
		s.change(mine, 1, false, true)
		doc, err := read(t, r, mine)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(doc.Gzip()))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, doc.Body) {
			t.Errorf("%v, %s", err, plain)
		}
		time.Sleep(5 * time.Second)
		again, err := read(t, r, mine)
		if err != nil || &again.Gzip()[0] != &doc.Gzip()[0] {
			t.Errorf("%v: the copy was made again", err)
		}
	})
	for _, plain := range [][]byte{bytes.Repeat([]byte{'x'}, compressFrom), []byte("{}")} {
		if NewDocument("itm_1", Version{Revision: 1, Body: plain}).Gzip() != nil {
			t.Errorf("%d bytes are compressed", len(plain))
		}
	}
}
