package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"storefront.internal/deploy/stack"
)

// churn is what happens to a shop while it is loaded, planned by a seed: which products change, are deleted
// and are created, and which webhooks are delivered.
type churn struct {
	*shop
	dice                   *rand.Rand
	changed, deleted, made []int64
	webhooks               struct{ Sent, Doubled, Dropped, Forged, Unheard int }
}

func newChurn(s *shop, dice *rand.Rand, products int) *churn {
	l := &churn{shop: s, dice: dice}
	for n, i := range dice.Perm(products) {
		id := int64(1001 + i)
		switch {
		case n < products/20:
			l.changed = append(l.changed, id)
		case n < products/20+products/100:
			l.deleted = append(l.deleted, id)
		}
	}
	for i := range products / 200 {
		l.made = append(l.made, int64(900_001+i))
	}
	return l
}

// run makes the planned changes in random order with short pauses, from the moment when the platform has all
// its subscriptions. A second change follows each fourth one.
func (l *churn) run() {
	for l.subscribedOnce() != nil && l.t.Context().Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	var happens []func()
	for i, id := range l.changed {
		happens = append(happens, func() { l.changes(id, "Uno", l.provider.updated) })
		if i%4 == 0 {
			happens = append(happens, func() { l.changes(id, "Dos", l.provider.updated) })
		}
	}
	for _, id := range l.made {
		happens = append(happens, func() { l.changes(id, "Nuevo", l.provider.created) })
	}
	for _, id := range l.deleted {
		happens = append(happens, func() {
			l.announceLater(l.provider.updated, id) // may come late, and then must not bring it back
			if status, err := l.ask(http.MethodDelete, "products/"+strconv.FormatInt(id, 10), nil,
				nil); err != nil || status >= 300 {
				l.t.Errorf("delete %d: %d %v", id, status, err)
			}
			l.announceLater(l.provider.deleted, id)
		})
	}
	l.dice.Shuffle(len(happens), func(i, j int) { happens[i], happens[j] = happens[j], happens[i] })
	for _, happen := range happens {
		happen()
		select {
		case <-l.t.Context().Done():
			return
		case <-time.After(time.Duration(50+l.dice.IntN(100)) * time.Millisecond):
		}
	}
}

func (l *churn) changes(id int64, title, topic string) {
	text, price := strconv.FormatInt(id, 10), fmt.Sprintf("%d.%02d", 1+l.dice.IntN(9000), l.dice.IntN(100))
	patch := l.provider.patch(id, fmt.Sprint(title, " ", text, " ", price), price)
	if status, err := l.ask(http.MethodPut, "products/"+text, patch, nil); err != nil || status >= 300 {
		l.t.Errorf("change %d: %d %v", id, status, err)
	}
	l.announceLater(topic, id)
}

// announceLater lets the platform send a webhook late, once or twice, with a forged one beside it, or not at
// all.
func (l *churn) announceLater(topic string, id int64) {
	w := webhook{Topic: topic, ExternalID: strconv.FormatInt(id, 10), DelayMS: 1 + l.dice.IntN(1500)}
	chance := l.dice.IntN(100)
	switch {
	case chance < 10:
		l.webhooks.Dropped++
		return
	case chance < 40:
		w.Repeat = 2
		l.webhooks.Doubled++
	case chance < 45:
		forged := w
		forged.Forge = []string{"signature", "body", "missing"}[l.dice.IntN(3)]
		l.order(forged)
		l.webhooks.Forged++
	}
	l.order(w)
	l.webhooks.Sent++
}

// order lets the platform send a webhook to its subscribers. After some failures in a row one platform drops
// a subscription, and nothing is subscribed.
func (l *churn) order(w webhook) {
	status, err := l.ask(http.MethodPost, "webhooks", w, nil)
	switch {
	case err != nil || status >= 300 && status != http.StatusConflict:
		l.t.Errorf("%+v: %d %v", w, status, err)
	case status == http.StatusConflict:
		l.webhooks.Unheard++
	}
}

// watch reads some products at an edge all the time: a revision never falls, and a deleted product is not
// seen again.
func (l *churn) watch(ctx context.Context, edge *stack.Process) {
	type seen struct {
		revision int64
		gone     bool
	}
	last := map[int64]seen{}
	ids := append(append([]int64{}, l.changed[:min(8, len(l.changed))]...),
		l.deleted[:min(8, len(l.deleted))]...)
	for i := 0; ctx.Err() == nil; i++ {
		id := ids[i%len(ids)]
		was := last[id]
		got, err := l.read(edge, l.item(strconv.FormatInt(id, 10)), "")
		switch {
		case err != nil: // it is asked again
		case got.Status == http.StatusOK && (was.gone || got.Revision < was.revision):
			l.t.Errorf("%s: product %d is read at revision %d after %+v", l.provider.name, id, got.Revision,
				was)
		case got.Status == http.StatusOK:
			last[id] = seen{revision: got.Revision}
		case gone(got) && was.revision > 0:
			last[id] = seen{was.revision, true}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitTruth waits until the catalog equals the provider's: webhooks and catch-ups find what changed, and the
// next bootstrap run finds a deletion whose webhook was lost.
func (l *churn) awaitTruth() {
	l.t.Helper()
	eventually(l.t, long(), l.provider.name+" is installed and loaded", func() error {
		got, err := l.x.api.ViewConnection(l.t.Context(), l.ConnectionID)
		if err == nil && (got.State != "active" || got.Installation.State != "completed") {
			err = fmt.Errorf("%+v", got)
		}
		if err != nil {
			return err
		}
		if n := l.x.number("SELECT count(*) FROM control.bootstrap_runs WHERE connection_id = $1 AND "+
			"state = 'completed'", l.ConnectionID); n == 0 {
			return fmt.Errorf("no load is completed")
		}
		return nil
	})
	want := l.expected()
	eventually(l.t, long(), l.provider.name+": what changed",
		func() error { return l.differs(want, append(l.changed, l.made...)) })
	run, err := l.x.api.OpenBootstrap(l.t.Context(), l.ConnectionID)
	check(l.t, err)
	eventually(l.t, long(), l.provider.name+" is loaded again", func() error {
		got, err := l.x.api.ViewBootstrap(l.t.Context(), l.ConnectionID, run)
		if err == nil && got.State != "completed" {
			err = fmt.Errorf("%+v", got)
		}
		return err
	})
	eventually(l.t, long(), l.provider.name+" is the provider's truth",
		func() error { return l.differs(want, nil) })
	l.checkSweep()
}

// expected is the catalog as the provider has it.
func (l *churn) expected() map[string]facts {
	l.t.Helper()
	var there struct{ IDs []int64 }
	l.debug(http.MethodGet, "products", nil, &there)
	want := make(map[string]facts, len(there.IDs))
	for _, id := range there.IDs {
		var doc json.RawMessage
		name := strconv.FormatInt(id, 10)
		l.debug(http.MethodGet, "products/"+name, nil, &doc)
		f, err := l.provider.facts(doc)
		check(l.t, err)
		want[name] = f
	}
	return want
}

// differs compares the stored catalog with the expected one: these products, or all and no other.
func (l *churn) differs(want map[string]facts, these []int64) error {
	rows, err := l.x.pool.Query(context.Background(),
		"SELECT body FROM control.aggregates WHERE connection_id = $1 AND body IS NOT NULL", l.ConnectionID)
	if err != nil {
		return err
	}
	defer rows.Close()
	have := map[string]facts{}
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		id, f, err := aggregateFacts(l.provider.language, body)
		if err != nil {
			return err
		}
		have[id] = f
	}
	for _, id := range these {
		if name := strconv.FormatInt(id, 10); !reflect.DeepEqual(have[name], want[name]) {
			return fmt.Errorf("product %s is %+v, the provider's is %+v", name, have[name], want[name])
		}
	}
	if these != nil {
		return rows.Err()
	}
	for name := range have {
		if !reflect.DeepEqual(have[name], want[name]) {
			return fmt.Errorf("product %s is %+v, the provider's is %+v", name, have[name], want[name])
		}
	}
	if len(have) != len(want) {
		return fmt.Errorf("%d products, the provider has %d", len(have), len(want))
	}
	return rows.Err()
}

// checkSweep: after a sweep the platform has one live subscription to each topic, whatever it dropped before.
func (l *churn) checkSweep() {
	l.t.Helper()
	_, err := l.x.pool.Exec(l.t.Context(),
		"UPDATE control.installations SET swept_at = NULL WHERE connection_id = $1", l.ConnectionID)
	check(l.t, err)
	_, err = l.x.pool.Exec(l.t.Context(),
		`INSERT INTO control.river_job (kind, args, max_attempts, queue)
		VALUES ('subscription_sweep', '{}', 1, 'installation')`)
	check(l.t, err)
	eventually(l.t, long(), l.provider.name+" has one set of subscriptions", l.subscribedOnce)
}

// subscribedOnce returns nil when the platform has one live subscription to each topic.
func (s *shop) subscribedOnce() error {
	var answer struct {
		Subscriptions []struct{ Topic, URL, Status string }
	}
	if status, err := s.ask(http.MethodGet, "subscriptions", nil, &answer); err != nil || status >= 300 {
		return fmt.Errorf("%d %w", status, err)
	}
	topics, urls := map[string]bool{}, map[string]bool{}
	for _, one := range answer.Subscriptions {
		if topics[one.Topic], urls[one.URL] = true, true; one.Status != "" && one.Status != "active" {
			return fmt.Errorf("%+v", one)
		}
	}
	if n := s.provider.subscriptions; len(topics) != n || len(urls) != n || len(answer.Subscriptions) != n {
		return fmt.Errorf("%d subscriptions to %d topics at %d addresses, want %d",
			len(answer.Subscriptions), len(topics), len(urls), n)
	}
	return nil
}
