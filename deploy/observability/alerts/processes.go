package alerts

// processes are the alerts on the processes themselves.
func processes() []Alert {
	const runbook = "processes.md"
	return []Alert{
		{Name: "StorefrontServiceAbsent", For: "5m", Severity: Page, Runbook: runbook,
			Expr: `absent(storefront_build_info{service="edge"}) or absent(storefront_build_info{service="control"}) ` +
				`or absent(storefront_build_info{service="engine-relay"})`,
			Summary:     "No process of a service is scraped",
			Description: "Every process of the service is gone, or Prometheus does not find it.",
			Fires: Case{Series: []string{steady(`storefront_build_info{service="edge"}`, 1), steady(`storefront_build_info{service="control"}`, 1)},
				Labels: []map[string]string{{"severity": "page", "service": "engine-relay"}}}},
		{Name: "StorefrontRestarting", Severity: Ticket, Runbook: runbook,
			Expr:        `changes(process_start_time_seconds[30m]) * on (namespace, job, instance) group_left (service) storefront_build_info > 3`,
			Summary:     "A process starts again and again",
			Description: "It started more than three times in half an hour: a configuration that it refuses, too little memory, or a defect.",
			Fires: Case{Series: []string{`process_start_time_seconds{job="edge",instance="a"} 0+60x1440`, `storefront_build_info{job="edge",instance="a",service="edge",version="1",go_version="g"} 1x1440`},
				Labels: []map[string]string{{"severity": "ticket", "job": "edge", "instance": "a", "service": "edge"}}}},
		{Name: "StorefrontPanic", Severity: Ticket, Runbook: runbook,
			Expr: `sum by (namespace) (increase(storefront_edge_http_panics_total[1h])) > 0 or sum by (namespace) (increase(storefront_edge_key_panics_total[1h])) > 0 ` +
				`or sum by (namespace) (increase(storefront_edge_item_panics_total[1h])) > 0 or sum by (namespace) (increase(storefront_control_http_panics_total[1h])) > 0 ` +
				`or sum by (namespace) (increase(storefront_control_job_panics_total[1h])) > 0`,
			Summary:     "A handler or a job panicked",
			Description: "It was answered with a 500 or is tried again. Every one is a defect; the log has its place.",
			Fires:       Case{Series: []string{`storefront_control_job_panics_total 0x30 1x1440`}, Labels: []map[string]string{{"severity": "ticket"}}}},
	}
}
