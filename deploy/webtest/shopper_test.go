//go:build web

package webtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
	"storefront.internal/deploy/webtest/browser"
)

func contextWith(r *http.Request, b batchIDs) context.Context {
	return context.WithValue(r.Context(), batchKey{}, b)
}

// shopper is one profile that visits the harness page some times, and once more at the end.
type shopper struct {
	*running
	name    string
	random  *rand.Rand
	link    *link.Link
	profile browser.Profile
	orders  int
}

// live plays all visits of the shopper. An error is trouble of the harness; signals are judged later.
func (s *shopper) live(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if s.link, err = s.openLink(s.name); err != nil {
		return err
	}
	defer s.link.Cut()
	if s.profile, err = s.browser.Profile(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.profile.Close(context.WithoutCancel(ctx))) }()
	for range visitsOfAShopper {
		if err := s.visit(ctx); err != nil {
			s.say("a visit ended early")
		}
	}
	return s.lastVisit(ctx)
}

// open opens the page with a key.
func (s *shopper) open(ctx context.Context, key client.Storefront) (browser.Page, error) {
	url := s.harness.shopper(s.name, "http://"+s.link.Addr(), key, nil)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return s.profile.Open(ctx, url)
}

// visit is one visit: a recommendation, some acts, a fault in between, and an end.
func (s *shopper) visit(ctx context.Context) error {
	page := stay{opened: time.Now()}
	p, err := s.open(ctx, *s.key.Load())
	if err != nil {
		return err
	}
	do := func(act string) error { return s.evaluate(ctx, p, "acts."+act) }
	if err := do("recommend()"); err != nil {
		return errors.Join(err, p.Close(ctx))
	}
	s.act(ctx, do)
	if s.faults && s.random.IntN(2) == 0 {
		s.breakLink()
	}
	s.act(ctx, do)
	page.left = time.Now()
	s.stayed(s.name, page)
	err = s.leave(ctx, p, do)
	if s.faults && s.random.IntN(3) > 0 {
		err = errors.Join(err, s.link.Heal())
	}
	return err
}

// evaluate gives a page ten seconds: under a fault it may hang in the harness' own request.
func (s *shopper) evaluate(ctx context.Context, p browser.Page, expression string) error {
	ctx, cancel := context.WithTimeout(ctx, 12*time.Second)
	defer cancel()
	return p.Evaluate(ctx, expression, nil)
}

// act does some random acts, with time between them where nothing fails. One that fails is not repeated: the
// page may be gone.
func (s *shopper) act(ctx context.Context, do func(string) error) {
	for range 1 + s.random.IntN(4) {
		if !s.faults && pause(ctx, time.Duration(s.random.IntN(1000))*time.Millisecond) != nil {
			return
		}
		i := s.random.IntN(6)
		var act string
		switch s.random.IntN(8) {
		case 0, 1:
			act = "impression()"
		case 2, 3:
			act = fmt.Sprintf("click(%d)", i)
		case 4:
			act = fmt.Sprintf("add(%d)", i)
		case 5:
			act = fmt.Sprintf("update(%d, %d)", i, s.random.IntN(5))
		case 6:
			act = fmt.Sprintf("remove(%d)", i)
		default:
			s.orders++
			act = fmt.Sprintf("buy(%q, %d)", fmt.Sprintf("%s-%d", s.name, s.orders), i)
		}
		if err := do(act); err != nil {
			s.say("an act failed")
			return
		}
	}
}

// breakLink puts one fault on the way to the edge.
func (s *shopper) breakLink() {
	var err error
	kind := ""
	switch s.random.IntN(5) {
	case 0:
		kind, err = "reset", s.link.Reset()
	case 1:
		kind, err = "answers lost", s.link.Deafen(int64(s.random.IntN(200)))
	case 2:
		kind, err = "black hole", s.link.Stall()
	case 3:
		latency := time.Duration(s.random.IntN(800)) * time.Millisecond
		kind, err = "slow", s.link.Slow(latency, 100*time.Millisecond)
	default:
		kind = "network off"
		s.link.Cut()
	}
	if err != nil {
		kind += ", not in time"
	}
	s.say("link: " + kind)
}

// leave ends the page in one of the ways in which pages end.
func (s *shopper) leave(ctx context.Context, p browser.Page, do func(string) error) error {
	switch s.random.IntN(6) {
	case 0:
		s.say("left: at once after an act")
		_ = do(fmt.Sprintf("click(%d)", s.random.IntN(6))) // judged by what was minted
		return p.Close(ctx)
	case 1:
		s.say("left: to another page")
		_ = do(fmt.Sprintf("add(%d), acts.leave('/away')", s.random.IntN(6))) // the page goes away meanwhile
		return errors.Join(pause(ctx, 300*time.Millisecond), p.Close(ctx))
	case 2:
		s.say("left: reloaded, then closed")
		err := p.Navigate(ctx, s.harness.URL+"/?s="+s.name)
		return errors.Join(err, p.Close(ctx))
	case 3:
		if !s.faults {
			return errors.Join(pause(ctx, 2*time.Second), p.Close(ctx))
		}
		if err := p.Crash(ctx); !errors.Is(err, browser.ErrUnsupported) {
			s.say("left: the page's process was killed")
			return errors.Join(err, p.Close(ctx))
		}
		fallthrough
	case 4:
		s.say("left: with a second tab")
		second, err := s.open(ctx, *s.key.Load())
		if err != nil {
			return errors.Join(err, p.Close(ctx))
		}
		return errors.Join(p.Close(ctx), second.Close(ctx))
	default:
		s.say("left: after two seconds")
		return errors.Join(pause(ctx, 2*time.Second), p.Close(ctx))
	}
}

var errWaits = errors.New("signals still wait in the browser")

// lastVisit opens the page once more on a sound way, with a key that is not revoked meanwhile, and waits
// until nothing waits in the browser. A page whose key is revoked keeps its signals for one with a new key.
func (s *shopper) lastVisit(ctx context.Context) error {
	if err := s.link.Heal(); err != nil {
		return err
	}
	s.stayed(s.name, stay{opened: time.Now()})
	p, err := s.open(ctx, shared.shop)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(ctx) }() // the profile is closed next
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		var left int
		if err := p.Evaluate(ctx, "sf.flush().then(() => signals())", &left); err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("%w: %d", errWaits, left)
		}
	}
}
