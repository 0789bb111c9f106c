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
	"storefront.internal/deploy/stack"
	"storefront.internal/shared/failpoint"
)

// Control is killed before and after each call that an installation makes to its provider: the list of
// subscriptions, and one call for each new one. After a restart the installation is completed. One call of
// each provider is tested here, all of them by `make soak`, which also shows that there is no further call.
func TestSagaKilled(t *testing.T) {
	t.Parallel()
	for _, b := range providers() {
		calls := b.subscriptions + 1
		if soak(0, 1) == 0 {
			point := []string{failpoint.SagaCalling, failpoint.SagaCalled}[rand.IntN(2)]
			sagaKilledAt(t, b, point, 1+rand.IntN(calls), true)
			continue
		}
		for _, point := range []string{failpoint.SagaCalling, failpoint.SagaCalled} {
			for n := range calls {
				sagaKilledAt(t, b, point, n+1, true)
			}
			sagaKilledAt(t, b, point, calls+1, false)
		}
	}
}

func sagaKilledAt(t *testing.T, b provider, point string, n int, dies bool) {
	t.Helper()
	t.Run(fmt.Sprint(b.name, " ", point, " ", n), func(t *testing.T) {
		t.Parallel()
		p := newPlatform(t, fake.Config{Products: 20, Orders: 2, Unthrottled: true,
			Retries: quickRetries(60)})
		x := newDeployment(t, p.configure, func(s *stack.Settings) {
			s.Bin, s.ControlMore = shared.chaos, []string{fmt.Sprintf("CRASHPOINT=%s:%d", point, n)}
		})
		p.deliverTo(x)
		s := &shop{storefront: &storefront{t: t}, x: x, p: p, provider: b, id: b.storeID()}
		token := b.token()
		eventually(t, 2*time.Minute, "the installation is stored", func() error {
			_, err := s.tryInstall(token) // one that is killed may not come to its answer
			return errors.Join(x.pool.QueryRow(t.Context(),
				"SELECT connection_id FROM control.connections").Scan(&s.ConnectionID), unless(dies, err))
		})
		if dies {
			eventually(t, 2*time.Minute, "control dies", dead(x.control))
			if n := x.number("SELECT count(*) FROM control.installations WHERE state = 'opened'"); n != 1 {
				t.Error("the saga is not at the step whose call was cut off")
			}
			x.control.SetBinaries(shared.plain)
			x.passMinute()
			x.controlAgain()
		}
		s.awaitInstalled(60 * time.Second)
		if err := dead(x.control)(); err == nil {
			t.Error("control died once more")
		}
		check(t, s.subscribedOnce())
		s.announce(webhook{Topic: b.updated, ExternalID: "1001"}, http.StatusAccepted)
		s.checkSealed(token)
	})
}

// unless ignores an error that is expected.
func unless(expected bool, err error) error {
	if expected {
		return nil
	}
	return err
}

// awaitInstalled waits until an installation is completed and its bootstrap run has ended.
func (s *shop) awaitInstalled(within time.Duration) {
	s.t.Helper()
	eventually(s.t, within, "the installation", func() error {
		got, err := s.x.api.ViewConnection(s.t.Context(), s.ConnectionID)
		if err == nil && got.Installation.State != "completed" {
			err = fmt.Errorf("%+v", got)
		}
		return err
	})
	eventually(s.t, within, "its load", func() error { return s.bootstrapAt(s.t, "completed", 20) })
}

// checkSealed: the database shows the access token nowhere.
func (s *shop) checkSealed(token string) {
	s.t.Helper()
	secret, _, _ := strings.Cut(token, ":")
	for _, table := range []string{"credentials", "installations", "connections", "endpoints",
		"bootstrap_runs", "river_job"} {
		n := s.x.number("SELECT count(*) FROM control."+table+
			" AS r WHERE to_jsonb(r)::text LIKE '%' || $1 || '%' OR to_jsonb(r)::text LIKE '%' || $2 || '%'",
			secret, fmt.Sprintf("%x", secret))
		if n != 0 {
			s.t.Errorf("control.%s shows the access token", table)
		}
	}
}

// A shop whose installation failed because its token was refused is installed by itself when the provider
// accepts the token, and at once when an operator opens a bootstrap run.
func TestFailedInstallationComesBack(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, fake.Config{Products: 20, Orders: 2, Unthrottled: true})
	x := newDeployment(t, p.configure)
	p.deliverTo(x)
	s := &shop{storefront: &storefront{t: t}, x: x, p: p, provider: providers()[0],
		id: providers()[0].storeID()}
	p.behave(map[string]any{"status": http.StatusUnauthorized})
	got, err := s.tryInstall(s.provider.token())
	check(t, err)
	s.ConnectionID = got.ConnectionID
	state := func(want string) func() error {
		return func() error {
			got, err := x.api.ViewConnection(t.Context(), s.ConnectionID)
			if now := got.Installation.State + " " + got.Installation.Reason; err == nil && now != want {
				err = fmt.Errorf("%s, want %s", now, want)
			}
			return err
		}
	}
	eventually(t, 2*time.Minute, "the failure is shown", state("failed credential_refused"))
	p.behave(map[string]any{})
	_, err = x.api.OpenBootstrap(t.Context(), s.ConnectionID)
	check(t, err)
	eventually(t, 2*time.Minute, "it comes", state("completed "))
	check(t, s.subscribedOnce())
}
