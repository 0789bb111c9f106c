package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

const connectors = 10

// said is a result that a connector received.
type said struct {
	key     observation.Key
	rev     int64
	element string
	observation.Result
}

// racer is one of the connectors.
type racer struct {
	rng      *rand.Rand
	entities int
	batch    int64
	said     []said
}

// element returns a random element: a revision in a moving window, one of two contents, sometimes a delete.
func (r *racer) element() (key observation.Key, rev int64, element string) {
	n := r.rng.IntN(r.entities)
	rev = 1 + 4*r.batch + r.rng.Int64N(16)
	external := "e" + strconv.Itoa(n/3)
	text := fmt.Sprintf("%d/%d", rev, r.rng.IntN(4)/3)
	entity := catalog.Entities()[n%3]
	switch {
	case r.rng.IntN(5) == 0:
		return observation.Key{Entity: entity, ExternalID: external}, rev, deleted(string(entity), external,
			rev)
	case entity == catalog.Product:
		categories := []string{}
		for range r.rng.IntN(4) {
			categories = append(categories, "e"+strconv.Itoa(r.rng.IntN(1+r.entities/3)))
		}
		if r.rng.IntN(2) == 0 { // with categories the same revision has other content
			categories = nil
		}
		element = product(external, rev, text, categories...)
	case entity == catalog.Category:
		element = category(external, rev, text)
	default:
		element = order(external, rev, text)
	}
	return observation.Key{Entity: entity, ExternalID: external}, rev, element
}

func (r *racer) run(s *shop, batches, size int) {
	var before []said
	for range batches {
		r.batch++
		var batch []said
		for range 1 + r.rng.IntN(size) {
			var e said
			if len(before) > 0 && r.rng.IntN(6) == 0 {
				e = before[r.rng.IntN(len(before))]
			} else {
				e.key, e.rev, e.element = r.element()
			}
			batch = append(batch, e)
		}
		elements := make([]string, len(batch))
		for i := range batch {
			elements[i] = batch[i].element
		}
		results, err := s.service.Deliver(context.Background(), s.source,
			[]byte(`{"observations":[`+strings.Join(elements, ",")+`]}`))
		if err != nil {
			s.t.Error(err)
			return
		}
		for i := range batch {
			batch[i].Result = results[i]
			if results[i].Status == observation.Accepted { // the engine may be told of it now
				snapshot, err := s.service.Snapshot(context.Background(), results[i].ObservationID)
				if err != nil || snapshot.Revision != batch[i].rev ||
					snapshot.ContentDigest != catalog.Digest(snapshot.Document) {
					s.t.Errorf("%s: snapshot %+v, %v", batch[i].key, snapshot, err)
				}
			}
		}
		before = append(before, batch...)
		r.said = append(r.said, batch...)
	}
}

// watchEnvelopes reads each envelope as soon as it is visible, as the engine would, until the context ends.
func watchEnvelopes(ctx context.Context, s *shop) (seen int) {
	var last int64
	for {
		ended := ctx.Err() != nil
		rows, err := s.super.Query(context.Background(),
			`SELECT seq, id, convert_from(body, 'UTF8')::json -> 'data' ->> 'content_digest' FROM delivery.entries WHERE kind = 2 AND seq > $1 ORDER BY seq`, last-1000)
		if err != nil {
			s.t.Error(err)
			return seen
		}
		found := map[ident.ObservationID]string{}
		for rows.Next() {
			var id ident.ObservationID
			var digest string
			if err := rows.Scan(&last, &id, &digest); err != nil {
				s.t.Error(err)
			}
			found[id] = digest
		}
		rows.Close()
		for id, digest := range found {
			seen++
			if snapshot, err := s.service.Snapshot(context.Background(), id); err != nil ||
				snapshot.ContentDigest != digest {
				s.t.Errorf("envelope %s of %s: %+v, %v", id, digest, snapshot, err)
			}
		}
		if ended {
			return seen
		}
	}
}

// TestConnectorsRace is small; SOAK=1 races over 1,000 entities.
func TestConnectorsRace(t *testing.T) {
	t.Parallel()
	entities, batches, size := 60, 12, 30
	if os.Getenv("SOAK") != "" {
		entities, batches, size = 1000, 100, 200
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := newShop(t)
	client, prefix := s.runJobs()
	watching, stop := context.WithCancel(context.Background())
	var wg, watch sync.WaitGroup
	watch.Go(func() { watchEnvelopes(watching, s) })
	racers := make([]*racer, connectors)
	for i := range racers {
		racers[i] = &racer{rng: rand.New(rand.NewPCG(seed, uint64(i))), entities: entities}
		wg.Go(func() { racers[i].run(s, batches, size) })
	}
	wg.Wait()
	stop()
	watch.Wait()
	s.settled()
	checkHistory(s, racers)
	checkAggregates(s, func(item string) string {
		return client.Get(context.Background(), prefix+"item:"+string(s.source.ConnectionID)+":"+item).Val()
	})
	if n := s.retries(); n != 0 {
		t.Errorf("the server ended %v transactions for deadlocks", n)
	}
}

// checkHistory compares the results that connectors received with what is stored.
func checkHistory(s *shop, racers []*racer) {
	s.t.Helper()
	statuses := map[observation.Status]int{}
	accepted := map[observation.Key]map[int64]said{}
	for _, r := range racers {
		for _, e := range r.said {
			statuses[e.Status]++
			if e.Status != observation.Accepted {
				continue
			}
			if accepted[e.key] == nil {
				accepted[e.key] = map[int64]said{}
			}
			if other, twice := accepted[e.key][e.rev]; twice {
				s.t.Errorf("%s revision %d was accepted twice: %s, %s", e.key, e.rev,
					other.ObservationID, e.ObservationID)
			}
			accepted[e.key][e.rev] = e
		}
	}
	s.t.Logf("statuses %v", statuses)
	for _, r := range racers {
		for _, e := range r.said {
			revisions := accepted[e.key]
			raw := scan[[]byte](s,
				`SELECT coalesce((SELECT raw FROM control.observations WHERE observation_id = $1), '')`,
				e.ObservationID)
			switch e.Status {
			case observation.Duplicate:
				if revisions[e.rev].ObservationID != e.ObservationID {
					s.t.Errorf("%s revision %d is a duplicate of %s, accepted as %s", e.key, e.rev,
						e.ObservationID, revisions[e.rev].ObservationID)
				}
				continue
			case observation.Conflict:
				if _, there := revisions[e.rev]; !there || revisions[e.rev].element == e.element {
					s.t.Errorf("%s revision %d conflicts with nothing", e.key, e.rev)
				}
			case observation.Stale:
				if e.rev >= slices.Max(slices.Collect(maps.Keys(revisions))) {
					s.t.Errorf("%s revision %d is stale, and the greatest", e.key, e.rev)
				}
			}
			if string(raw) != e.element {
				s.t.Errorf("%s %s is archived as %.100q, sent %.100q", e.Status,
					e.ObservationID, raw, e.element)
			}
		}
	}
	total := 0
	for key, revisions := range accepted {
		total += len(revisions)
		applied := scan[int64](s,
			`SELECT revision FROM control.entities WHERE connection_id = $1 AND entity = $2 AND external_id = $3`, s.source.ConnectionID, key.Entity, key.ExternalID)
		if greatest := slices.Max(slices.Collect(maps.Keys(revisions))); applied != greatest {
			s.t.Errorf("%s: applied %d, greatest accepted %d", key, applied, greatest)
		}
		if key.Entity == catalog.Product {
			if v := s.served(key.ExternalID); v.Revision < int64(len(revisions)) {
				s.t.Errorf("%s: refresh_revision %d after %d accepted", key.ExternalID,
					v.Revision, len(revisions))
			}
		}
	}
	if n := scan[int](s, `SELECT count(DISTINCT id) FROM delivery.entries WHERE kind = 2`); n != total ||
		n != scan[int](s, `SELECT count(*) FROM delivery.entries`) {
		s.t.Errorf("%d envelopes, %d accepted", n, total)
	}
	if n := scan[int](s, `SELECT count(*) FROM control.entities WHERE revision = 0`); n != 0 {
		s.t.Errorf("%d entities without a revision", n)
	}
}

// checkAggregates composes every item from what is stored, and compares it with what is served and pushed.
func checkAggregates(s *shop, pushed func(item string) string) {
	s.t.Helper()
	ctx := context.Background()
	nodes := map[catalog.TaxonomyID][]byte{}
	rows, err := s.super.Query(ctx, `SELECT taxonomy_id, document FROM control.taxonomy_nodes`)
	if err != nil {
		s.t.Fatal(err)
	}
	for rows.Next() {
		var id catalog.TaxonomyID
		var document []byte
		if err := rows.Scan(&id, &document); err != nil {
			s.t.Fatal(err)
		}
		nodes[id] = document
	}
	categories, err := observation.Categories(nodes)
	if err != nil {
		s.t.Fatal(err)
	}
	rows, err = s.super.Query(ctx, `SELECT a.item_id, a.refresh_revision, a.document, a.body,
			a.taxonomy_ids = array(SELECT taxonomy_id FROM control.item_taxonomy t WHERE t.connection_id = a.connection_id AND t.item_id = a.item_id ORDER BY 1),
			EXISTS (SELECT FROM control.entities e JOIN control.observations o ON o.observation_id = e.observation_id
				WHERE e.connection_id = a.connection_id AND e.entity = 'product' AND o.document IS NOT DISTINCT FROM a.document)
		FROM control.aggregates a`)
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		var item string
		var revision int64
		var document, body []byte
		var linked, applied bool
		if err := rows.Scan(&item, &revision, &document, &body, &linked, &applied); err != nil {
			s.t.Fatal(err)
		}
		if !linked || !applied {
			s.t.Errorf("%s: links are taxonomy_ids: %t; the document is the applied observation's: %t",
				item, linked, applied)
		}
		if n++; body != nil {
			d, err := catalog.Decode(catalog.Product, document)
			if err != nil {
				s.t.Fatal(err)
			}
			if want := catalog.Compose(d.(*catalog.CatalogAggregate), revision,
				categories); string(want) != string(body) {
				s.t.Errorf("%s is served as\n%s\nwant\n%s", item, body, want)
			}
		}
		if got, want := pushed(item), fmt.Sprintf("%d\n%s", revision, body); got != want {
			s.t.Errorf("%s: Redis holds %.100q, want %.100q", item, got, want)
		}
	}
	if n == 0 {
		s.t.Error("there is no item")
	}
}
