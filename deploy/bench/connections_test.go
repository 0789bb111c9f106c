package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/ident/decisionid"
)

const (
	manyConnections = 10_000
	fewConnections  = 10
	waitingInRound  = 10_000 // interactions that wait in one measurement
	deliverRounds   = 5
	fullRequest     = 200 // interactions, the most that the engine accepts
)

// tenant is a connection with the Decision that its interactions await.
type tenant struct {
	connection ident.ConnectionID
	decision   string
}

// drained are the measurements of one case.
type drained struct {
	fromStart, fromFirst []float64 // interactions/s: from the start of the relay, from its first request
	requests             []float64 // per 1,000 interactions
}

// BenchmarkDeliverToConnections is delivery by one relay while 10,000 interactions wait: one for each of
// 10,000 connections, or 1,000 for each of ten. The cases take turns. A measurement ends when the queue is
// empty. The limit is a program that posts the same interactions in full requests.
func BenchmarkDeliverToConnections(b *testing.B) {
	s := newDeployment(b)
	stop(b, s.relay()) // makes the partitions of Decisions
	pool, err := pgxpool.New(b.Context(), s.Settings.Database)
	check(b, err)
	b.Cleanup(pool.Close)
	few, many := s.waitingTenants(b, pool, fewConnections), s.waitingTenants(b, pool, manyConnections)
	var rates [2]drained
	for round := range deliverRounds + 1 {
		for i, who := range [][]tenant{few, many} {
			count := &rates[i]
			if round == 0 { // the first one makes the lanes
				count = &drained{}
			}
			s.drain(b, pool, who, fmt.Sprintf("%d_%d", round, i), count)
		}
	}
	bare := postedInFullRequests(b, s.Settings.EngineToken, many)
	for i, name := range []string{"10", "10,000"} {
		rows.add("delivery to %6s connections: %.0f interactions/s until the queue is empty (%.0f with the "+
			"relay's start), %.1f requests per 1,000 interactions, %.3f of posting in full requests (%.0f/s)",
			name, median(rates[i].fromFirst), median(rates[i].fromStart), median(rates[i].requests),
			median(rates[i].fromFirst)/bare, bare)
	}
	tenFold, rate := median(rates[0].fromFirst), median(rates[1].fromFirst)
	rows.goal("delivery to 10,000 connections with one signal each", fmt.Sprintf("%.0f/s", rate), "",
		fmt.Sprintf("%.1f requests per 1,000", median(rates[1].requests)), "≥ 15,000/s, ≤ 8 requests")
	rows.goal("delivery to 10,000 connections ÷ to ten", fmt.Sprintf("%.0f/s", rate),
		fmt.Sprintf("%.0f/s", tenFold), fmt.Sprintf("%.2f", rate/tenFold), "≥ 0.5")
	b.ReportMetric(rate, "interactions/s")
	b.ReportMetric(rate/tenFold, "10000/10")
	b.ReportMetric(0, "ns/op")
}

// waitingTenants makes connections whose Decisions are stored.
func (s *deployment) waitingTenants(b *testing.B, pool *pgxpool.Pool, n int) []tenant {
	b.Helper()
	keys, err := decisionid.ParseKeyring(s.Settings.DecisionKeys)
	check(b, err)
	run, now := random(4), time.Now()
	all := make([]tenant, n)
	connections, decisions, minted := make([]string, n), make([]string, n), make([]time.Time, n)
	for i := range all {
		c := ident.ConnectionID(fmt.Sprintf("con_%s%06d", run, i))
		all[i] = tenant{c, string(keys.Mint(c, now))}
		at, _ := decisionid.MintedAt(all[i].decision)
		connections[i], decisions[i], minted[i] = string(c), all[i].decision, at
	}
	_, err = pool.Exec(b.Context(), `
INSERT INTO relay.decisions (connection_id, decision_id, minted_at, store_id, placement, source, served_at, items, engine_ids)
SELECT c, d, m, 'str_1', 'home', 'engine', m, '[]', '{"run":"r1","ranks":[1,2,3]}'
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS t (c, d, m)`, connections, decisions, minted)
	check(b, err)
	return all
}

// drain enqueues interactions, starts a relay, and measures until nothing waits.
func (s *deployment) drain(
	b *testing.B, pool *pgxpool.Pool, who []tenant, round string, count *drained,
) {
	b.Helper()
	const batch = 4000
	for from := 0; from < waitingInRound; from += batch {
		entries := make([]deliveries.Entry, 0, batch)
		for i := from; i < min(from+batch, waitingInRound); i++ {
			entries = append(entries, who[i%len(who)].interaction(round, i))
		}
		check(b, pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
			return deliveries.Enqueue(b.Context(), tx, entries)
		}))
	}
	engine := newEngine(b, s.Settings.EngineToken)
	s.Settings.EngineURL, s.Settings.EngineSecret = engine.url, s.Settings.EngineToken
	begun := time.Now()
	relay := s.relay()
	engine.awaits(b, waitingInRound)
	for waits := true; waits; {
		check(b, pool.QueryRow(b.Context(), `SELECT EXISTS (SELECT FROM delivery.entries)`).Scan(&waits))
	}
	ended := time.Now()
	stop(b, relay)
	engine.mu.Lock()
	defer engine.mu.Unlock()
	count.fromStart = append(count.fromStart, waitingInRound/ended.Sub(begun).Seconds())
	count.fromFirst = append(count.fromFirst, waitingInRound/ended.Sub(engine.begun).Seconds())
	count.requests = append(count.requests, float64(engine.requests.Load())*1000/waitingInRound)
}

func (t tenant) interaction(round string, i int) deliveries.Entry {
	id := fmt.Sprintf("sig_%s_%06d", round, i)
	return deliveries.Entry{
		Kind: deliveries.Interaction, ConnectionID: t.connection, LaneKey: t.decision, ID: id,
		Awaits: t.decision, Body: fmt.Appendf(nil,
			`{"signal_id":%q,"connection_id":%q,"store_id":"str_1","type":"click",`+
				`"occurred_at":"2026-11-22T10:00:00.000000Z","received_at":"2026-11-22T10:00:00.100000Z",`+
				`"decision_id":%q,"item_id":"itm_5f1c9a7b3d2e4f600001","variant_id":"var_5f1c9a7b3d2e4f600001",`+
				`"position":3,"visitor":{"visitor_id":"vis_0123456789abcdef","session_id":"ses_0123456789abcdef"}}`,
			id, t.connection, t.decision),
	}
}

// postedInFullRequests is the rate of a program that posts interactions from memory in full requests.
func postedInFullRequests(b *testing.B, token string, who []tenant) float64 {
	b.Helper()
	engine := newEngine(b, token)
	var bodies [][]byte
	for i := range waitingInRound {
		bodies = append(bodies, who[i%len(who)].interaction("bare", i).Body)
	}
	requests := slices.Collect(slices.Chunk(bodies, fullRequest))
	var next atomic.Int64
	const senders = 4 // as many as a relay has workers
	elapsed(b, senders, 20*len(requests), func(int) error {
		chunk := requests[int(next.Add(1))%len(requests)]
		body := slices.Concat([]byte(`{"interactions":[`), bytes.Join(chunk, []byte{','}), []byte(`]}`))
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
			engine.url+"/v1/interactions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return errors.Join(err, res.Body.Close())
	})
	return engine.awaits(b, 20*waitingInRound)
}
