// Package live owns the proof that dashboards and alerts work: it brings up the local stack on real stores, has a real Prometheus scrape it under load, runs every query of every dashboard and every rule, and provokes three alerts.
//
// It takes the rules as they are but for the time that a condition must hold (`for`), which a copy shortens to seconds. It refuses to touch a stack that somebody else runs: its own has a folder and ports of its own.
package live
