package systemtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/local/services"
	"storefront.internal/shared/crashpoint"
)

// Control is killed before and after each call that an installation makes to its provider: a list of the subscriptions, and one
// call for each that is made. What is started afterwards completes it. One call of each provider here, all of them under
// `make soak`, where the call behind the last one shows that there is none.
func TestSagaKilled(t *testing.T) {
	t.Parallel()
	for _, b := range brands() {
		calls := b.subscriptions + 1
		if soak(0, 1) == 0 {
			point := []string{crashpoint.SagaCalling, crashpoint.SagaCalled}[rand.IntN(2)]
			sagaKilledAt(t, b, point, 1+rand.IntN(calls), true)
			continue
		}
		for _, point := range []string{crashpoint.SagaCalling, crashpoint.SagaCalled} {
			for n := range calls {
				sagaKilledAt(t, b, point, n+1, true)
			}
			sagaKilledAt(t, b, point, calls+1, false)
		}
	}
}

func sagaKilledAt(t *testing.T, b brand, point string, n int, dies bool) {
	t.Helper()
	t.Run(fmt.Sprint(b.name, " ", point, " ", n), func(t *testing.T) {
		t.Parallel()
		p := newPlatform(t, fake.Config{Products: 20, Orders: 2, Unthrottled: true, Retries: quickRetries(60)})
		x := newTopology(t, p.configure, func(s *services.Settings) {
			s.Bin, s.ControlMore = shared.chaos, []string{fmt.Sprintf("CRASHPOINT=%s:%d", point, n)}
		})
		p.deliversTo(x)
		s := &store{shop: &shop{t: t}, x: x, p: p, brand: b, id: b.storeID()}
		token := b.token()
		eventually(t, 2*time.Minute, "the installation is stored", func() error {
			_, err := s.installs(token) // one that is killed may not come to its answer
			return errors.Join(x.pool.QueryRow(t.Context(), "SELECT connection_id FROM control.connections").Scan(&s.connection), unless(dies, err))
		})
		if dies {
			eventually(t, 2*time.Minute, "control dies", x.control.dead)
			if n := x.number("SELECT count(*) FROM control.installations WHERE state = 'opened'"); n != 1 {
				t.Error("the saga is not at the step whose call was cut off")
			}
			x.settings.Bin, x.settings.ControlMore = shared.plain, nil
			x.minutePasses()
			x.startControl()
			p.deliversTo(x)
		}
		s.comes(60 * time.Second)
		if err := x.control.dead(); err == nil {
			t.Error("control died once more")
		}
		check(t, s.oneSet())
		s.announce(webhook{Topic: b.updated, ExternalID: "1001"}, http.StatusAccepted)
		s.sealed(token)
	})
}

// unless forgives what has to be expected.
func unless(expected bool, err error) error {
	if expected {
		return nil
	}
	return err
}

// comes waits until an installation is completed and its load has ended.
func (s *store) comes(within time.Duration) {
	s.t.Helper()
	eventually(s.t, within, "the installation", func() error {
		got, err := s.x.api.Progress(s.t.Context(), s.connection)
		if err == nil && got.Installation.State != "completed" {
			err = fmt.Errorf("%+v", got)
		}
		return err
	})
	eventually(s.t, within, "its load", func() error { return s.pages(s.t, "completed", 20) })
}

// sealed: nothing that the database holds shows the access token, which opens the shop all the same.
func (s *store) sealed(token string) {
	s.t.Helper()
	secret, _, _ := strings.Cut(token, ":")
	for _, table := range []string{"credentials", "installations", "connections", "endpoints", "bootstrap_runs", "river_job"} {
		n := s.x.number("SELECT count(*) FROM control."+table+" AS r WHERE to_jsonb(r)::text LIKE '%' || $1 || '%' OR to_jsonb(r)::text LIKE '%' || $2 || '%'",
			secret, fmt.Sprintf("%x", secret))
		if n != 0 {
			s.t.Errorf("control.%s shows the access token", table)
		}
	}
}

// A store whose installation failed, because its token was not taken, comes by itself when the provider takes it: without the
// merchant, and at once when an operator opens a load.
func TestFailedInstallationComesBack(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 20, Orders: 2, Unthrottled: true})
	x := newTopology(t, p.configure)
	p.deliversTo(x)
	s := &store{shop: &shop{t: t}, x: x, p: p, brand: brands()[0], id: brands()[0].storeID()}
	p.behave(map[string]any{"status": http.StatusUnauthorized})
	got, err := s.installs(s.brand.token())
	check(t, err)
	s.connection = got.ConnectionID
	state := func(want string) func() error {
		return func() error {
			got, err := x.api.Progress(t.Context(), s.connection)
			if now := got.Installation.State + " " + got.Installation.Reason; err == nil && now != want {
				err = fmt.Errorf("%s, want %s", now, want)
			}
			return err
		}
	}
	eventually(t, 2*time.Minute, "the failure is shown", state("failed credential_refused"))
	p.behave(map[string]any{})
	_, err = x.api.Bootstrap(t.Context(), s.connection)
	check(t, err)
	eventually(t, 2*time.Minute, "it comes", state("completed "))
	check(t, s.oneSet())
}
