package app

import (
	"time"

	"storefront.internal/control/internal/jobs"
	"storefront.internal/shared/settings"
)

// Retention is after how many days rows are deleted.
type Retention struct {
	ArchiveDays int `envconfig:"ARCHIVE_DAYS" default:"90" desc:"days after which archived observations (also quarantined ones, and the snapshots that the engine reads) and webhook events are dropped, at least 31; 0 keeps them. Both hold buyers' data"`
	DeadDays    int `envconfig:"DEAD_DAYS" default:"90" desc:"days after which dead letters are deleted, at least 8; they cannot be replayed then. 0 keeps them"`
	RunDays     int `envconfig:"BOOTSTRAP_RUN_DAYS" default:"90" desc:"days after which ended bootstrap runs are deleted, but for the last one and the last completed one of a connection; at least 31; 0 keeps them"`
}

// The bounds: PostgreSQL's functions refuse to delete what is younger than thirty days.
const (
	minArchiveDays = 31
	minDeadDays    = 8
	maxDays        = 36500
)

// Validate implements the check that settings.Load calls.
func (r *Retention) Validate() (faults []error) {
	check := func(variable string, days, least int) {
		if days != 0 && (days < least || days > maxDays) {
			faults = append(faults, settings.Errorf(variable, "must be 0, or %d to %d", least, maxDays))
		}
	}
	check("ARCHIVE_DAYS", r.ArchiveDays, minArchiveDays)
	check("DEAD_DAYS", r.DeadDays, minDeadDays)
	check("BOOTSTRAP_RUN_DAYS", r.RunDays, minArchiveDays)
	return faults
}

func (r *Retention) jobs() jobs.Retention {
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	return jobs.Retention{
		Archive: days(r.ArchiveDays), Dead: days(r.DeadDays), BootstrapRuns: days(r.RunDays),
	}
}
