package alerts

// edge are the alerts on the public surface and the stores behind it.
func edge() []Alert {
	const runbook, stores = "edge.md", "stores.md"
	return []Alert{
		{Name: "StorefrontRedisDown", For: "2m", Severity: Page, Runbook: stores,
			Expr:        `max by (namespace, job) (storefront_redis_up) == 0`,
			Summary:     "Redis does not answer",
			Description: "Operation 1 answers 503 (unless EDGE says otherwise); items and keys are served from memory and PostgreSQL. Signals that clients keep come again.",
			Fires:       once(l{"severity": "page", "job": "edge"}, steady(`storefront_redis_up{job="edge"}`, 0))},
		{Name: "StorefrontPostgresDown", For: "2m", Severity: Page, Runbook: stores,
			Expr:        `max by (namespace, job) (storefront_postgres_up) == 0`,
			Summary:     "PostgreSQL does not answer",
			Description: "Signals are taken and wait in Kafka; nothing is stored or delivered, and the internal surface fails.",
			Fires:       once(l{"severity": "page", "job": "engine-relay"}, steady(`storefront_postgres_up{job="engine-relay"}`, 0))},
		{Name: "StorefrontPoolExhausted", For: "10m", Severity: Ticket, Runbook: stores,
			Expr: `max by (namespace, job, pool) (storefront_postgres_pool_connections{state="used"} / ignoring (state) storefront_postgres_pool_max_connections) > 0.9 ` +
				`and sum by (namespace, job, pool) (rate(storefront_postgres_pool_waits_total[5m])) > 0`,
			Summary:     "A pool of PostgreSQL connections is used up",
			Description: "Requests wait for a connection. Either statements became slow, or the pool is too small for the load.",
			Fires: once(l{"severity": "ticket", "job": "control", "pool": "control"}, steady(`storefront_postgres_pool_connections{job="control",pool="control",state="used"}`, 16),
				steady(`storefront_postgres_pool_max_connections{job="control",pool="control"}`, 16), rising(`storefront_postgres_pool_waits_total{job="control",pool="control"}`, 9))},
		{Name: "StorefrontClaimsCold", For: "75m", Severity: Ticket, Runbook: stores,
			Expr:        `max by (namespace) (storefront_edge_claims_cold) == 1`,
			Summary:     "Redis keeps forgetting claims",
			Description: "After a loss of Redis the ledger is asked too, for an hour. Longer means that Redis lost its memory again: eviction, restarts, fail-overs.",
			Fires:       Case{Series: []string{steady(`storefront_edge_claims_cold`, 1)}, After: "2h", Labels: []map[string]string{{"severity": "ticket"}}}},
		{Name: "StorefrontUnknownOutcomes", For: "5m", Severity: Ticket, Runbook: runbook,
			Expr:        `storefront:produce_unknown:ratio_rate15m > 0.01`,
			Summary:     "Kafka does not tell what became of records",
			Description: "More than 1 % of the records handed to Kafka ended without an answer. Their clients got 503 and come again; what landed twice is counted once.",
			Fires: once(l{"severity": "ticket"}, rising(`storefront_stream_produce_outcome_total{topic="storefront.signals.v1",outcome="acknowledged"}`, 95),
				rising(`storefront_stream_produce_outcome_total{topic="storefront.signals.v1",outcome="unknown"}`, 5))},
		{Name: "StorefrontKeyCacheOld", For: "30s", Severity: Page, Runbook: runbook,
			Expr:        `max by (namespace) (storefront_edge_key_cache_age_seconds) > 15`,
			Summary:     "An edge cannot confirm storefront keys, and answers 503",
			Description: "Neither Redis nor PostgreSQL confirmed the version of the keys for 15 s: a revoked key must not go on working.",
			Fires:       once(l{"severity": "page"}, steady(`storefront_edge_key_cache_age_seconds`, 20))},
		{Name: "StorefrontShedding", For: "10m", Severity: Ticket, Runbook: runbook,
			Expr:        `sum by (namespace, reason) (rate(storefront_edge_http_shed_total[5m])) > 0`,
			Summary:     "Edges refuse requests because they have too many",
			Description: "More requests or bytes are in work than an edge takes. Something behind it is slow, or there are too few edges.",
			Fires:       once(l{"severity": "ticket", "reason": "requests"}, rising(`storefront_edge_http_shed_total{reason="requests"}`, 30))},
		{Name: "StorefrontFallbacks", For: "15m", Severity: Ticket, Runbook: runbook,
			Expr: `sum by (namespace) (rate(storefront_edge_engine_requests_total{outcome=~"late|failed|open"}[15m])) ` +
				`/ sum by (namespace) (rate(storefront_edge_engine_requests_total[15m])) > 0.1`,
			Summary:     "More than 10 % of the recommendations are fallbacks",
			Description: "The engine is late, fails, or its breaker is open. Shoppers get the most recently refreshed items instead.",
			Fires: once(l{"severity": "ticket"}, rising(`storefront_edge_engine_requests_total{outcome="answered"}`, 80),
				rising(`storefront_edge_engine_requests_total{outcome="late"}`, 20))},
	}
}
