package httpapi

import (
	"context"
	"sync"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/recommend"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/signal"
	"storefront.internal/shared/storekey"
)

// keys is a fake of access: secrets and what they open.
type keys struct {
	mu         sync.Mutex
	grants     map[string]storekey.Grant
	remembered map[string]storekey.Grant
	err        error
	asked      int
	panicky    bool
}

func (k *keys) Resolve(_ context.Context, secret []byte) (storekey.Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.panicky {
		panic("canary-panic-value")
	}
	if k.err != nil {
		return storekey.Grant{}, k.err
	}
	g, ok := k.grants[string(secret)]
	if !ok {
		return storekey.Grant{}, fault.New(fault.Unauthorized, "")
	}
	return g, nil
}

// Known returns the grants that a test put into memory.
func (k *keys) Known(_ context.Context, secret []byte) (storekey.Grant, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g, ok := k.remembered[string(secret)]
	return g, ok
}

func (k *keys) calls() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// signals is a fake of recording signals; it keeps the requests.
type signals struct {
	mu   sync.Mutex
	got  []intake.Request
	size int
	do   func(ctx context.Context, req intake.Request) ([]signal.Result, error)
}

func (s *signals) Record(ctx context.Context, req intake.Request, charge func(int)) ([]signal.Result, error) {
	req.Body = append([]byte(nil), req.Body...)
	s.mu.Lock()
	s.got = append(s.got, req)
	do, size := s.do, s.size
	s.mu.Unlock()
	charge(size)
	if do != nil {
		return do(ctx, req)
	}
	return []signal.Result{{Index: 0, SignalID: "sig_1", HasSignalID: true, Status: signal.Accepted},
		{Index: 1, Status: signal.Rejected, Reason: signal.InvalidSignal}}, nil
}

func (s *signals) requests() []intake.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]intake.Request(nil), s.got...)
}

// recommendations is a fake of package recommend.
type recommendations struct {
	err error
	got recommend.Request
}

func (r *recommendations) Recommend(_ context.Context, req recommend.Request) (*recommend.Answer, error) {
	r.got = req
	if r.err != nil {
		return nil, r.err
	}
	return &recommend.Answer{DecisionID: "dec_1", Placement: "home",
		ServedAt: time.Date(2026, 1, 2, 3, 4, 5, 600000, time.UTC), Source: "engine",
		Items: []signal.DecisionItem{{Position: 0, ItemID: "itm_1", VariantID: "var_1"},
			{Position: 1, ItemID: "itm_2"}}}, nil
}
