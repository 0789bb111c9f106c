package alerts

// delivery are the alerts on the way to the engine.
func delivery() []Alert {
	const runbook = "delivery.md"
	return []Alert{
		{Name: "StorefrontDeliveryBlocked", For: "5m", Severity: Page, Runbook: runbook,
			Expr:        `max by (namespace) (storefront_engine_worker_state{state="blocked"}) == 1`,
			Summary:     "The engine refuses our credential; nothing is delivered",
			Description: "The engine answered 401. Signals are taken and stored, and wait. A different credential, or the operation resume_delivery, lets delivery go on.",
			Fires:       once(l{"severity": "page"}, steady(`storefront_engine_worker_state{state="blocked"}`, 1))},
		{Name: "StorefrontRelayDisabled", For: "15m", Severity: Info, Runbook: runbook,
			Expr:        `max by (namespace) (storefront_engine_worker_state{state="disabled"}) == 1`,
			Summary:     "No engine is configured; signals are stored and wait",
			Description: "RELAY_ENGINE_URL is empty at every relay. That is right while there is no engine.",
			Fires:       once(l{"severity": "info"}, steady(`storefront_engine_worker_state{state="disabled"}`, 1))},
		{Name: "StorefrontOldestPendingTooOld", For: "5m", Severity: Page, Runbook: runbook,
			Expr: `max by (namespace, kind) (storefront_engine_oldest_pending_seconds) > 900 ` +
				`unless on (namespace) max by (namespace) (storefront_engine_worker_state{state=~"blocked|disabled"}) == 1`,
			Summary:     "Deliveries wait for the engine for more than 15 minutes",
			Description: "The oldest waiting delivery is older than 15 minutes though the worker is neither blocked nor disabled: the engine fails, is slow, or a connection has more than its lane can carry.",
			Fires: once(l{"severity": "page", "kind": "interaction"}, steady(`storefront_engine_oldest_pending_seconds{kind="interaction"}`, 1000),
				steady(`storefront_engine_worker_state{state="running"}`, 1), steady(`storefront_engine_worker_state{state="blocked"}`, 0))},
		{Name: "StorefrontDeadDeliveries", Severity: Ticket, Runbook: runbook,
			Expr:        `max by (namespace, kind) (storefront_engine_dead_last_24h) > 0`,
			Summary:     "Deliveries died in the last 24 hours",
			Description: "The engine refused them for good, or they failed for a day. They are kept and can be replayed.",
			Fires:       once(l{"severity": "ticket", "kind": "interaction"}, steady(`storefront_engine_dead_last_24h{kind="interaction"}`, 2))},
		{Name: "StorefrontUnconfirmedCreations", For: "30m", Severity: Ticket, Runbook: runbook,
			Expr:        `min by (namespace, kind) (min_over_time(storefront_engine_unconfirmed_creations[15m])) > 0`,
			Summary:     "Deliveries were sent, and the engine has not answered for long",
			Description: "They are tried first, with the same bytes, until an answer confirms them. That they stay means that the engine hangs or cuts connections.",
			Fires:       once(l{"severity": "ticket", "kind": "interaction"}, steady(`storefront_engine_unconfirmed_creations{kind="interaction"}`, 3))},
		{Name: "StorefrontEngineFailing", For: "10m", Severity: Ticket, Runbook: runbook,
			Expr:        `min by (namespace, kind) (storefront_engine_breaker_open) == 1`,
			Summary:     "Every relay leaves the engine's call alone because it fails",
			Description: "Several requests in a row failed; one delivery at a time tries whether it is over.",
			Fires:       once(l{"severity": "ticket", "kind": "envelope"}, steady(`storefront_engine_breaker_open{kind="envelope"}`, 1))},
		{Name: "StorefrontQueueUnknown", For: "10m", Severity: Ticket, Runbook: runbook,
			Expr:        `max by (namespace) (storefront_engine_view_up) == 0`,
			Summary:     "The relays cannot read the queue's figures",
			Description: "Alerts on what waits and what died are blind until the queue can be read again.",
			Fires:       once(l{"severity": "ticket"}, steady(`storefront_engine_view_up`, 0))},
	}
}
