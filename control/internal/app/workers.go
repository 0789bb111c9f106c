package app

import (
	"storefront.internal/control/internal/jobs"
	"storefront.internal/shared/settings"
)

// Workers is how many jobs for shops one process runs at a time. Their defaults are those of package jobs.
type Workers struct {
	InstallationWorkers int `envconfig:"INSTALLATION_WORKERS" default:"8" desc:"installations that the process works on at a time; 1 to 200"`
	RefreshWorkers      int `envconfig:"REFRESH_WORKERS" default:"16" desc:"entities that the process fetches at a time after their webhooks, at most 4 of them of one shop; 1 to 200"`
	FirstLoadWorkers    int `envconfig:"FIRST_LOAD_WORKERS" default:"4" desc:"first loads of shops that the process works on at a time; nothing else takes these workers, so a new shop does not wait behind the periodic work of the others; 1 to 200"`
	LoadWorkers         int `envconfig:"LOAD_WORKERS" default:"4" desc:"other loads that the process works on at a time: those that open_bootstrap asked for, and then the periodic ones (CONTROL_RELOAD_EVERY); 1 to 200"`
	CatchUpWorkers      int `envconfig:"CATCH_UP_WORKERS" default:"8" desc:"catch-ups that the process works on at a time. All processes together need the number of shops, times the seconds of one catch-up (storefront_control_job_duration_seconds), divided by the seconds of CONTROL_CATCH_UP_EVERY; 1 to 200"`
	SubscriptionWorkers int `envconfig:"SUBSCRIPTION_CHECK_WORKERS" default:"4" desc:"shops whose webhook subscriptions the process checks at a time, each shop once an hour; 1 to 200"`
}

// mostWorkers of one kind keep the process within its memory and its connections.
const mostWorkers = 200

// Validate implements the check that settings.Load calls.
func (w *Workers) Validate() (faults []error) {
	for variable, n := range map[string]int{
		"INSTALLATION_WORKERS": w.InstallationWorkers, "REFRESH_WORKERS": w.RefreshWorkers,
		"FIRST_LOAD_WORKERS": w.FirstLoadWorkers, "LOAD_WORKERS": w.LoadWorkers,
		"CATCH_UP_WORKERS": w.CatchUpWorkers, "SUBSCRIPTION_CHECK_WORKERS": w.SubscriptionWorkers,
	} {
		if n < 1 || n > mostWorkers {
			faults = append(faults, settings.Errorf(variable, "must be 1 to %d", mostWorkers))
		}
	}
	return faults
}

func (w *Workers) jobs() jobs.Workers {
	return jobs.Workers{
		Installations: w.InstallationWorkers, Refreshes: w.RefreshWorkers, FirstLoads: w.FirstLoadWorkers,
		Loads: w.LoadWorkers, CatchUps: w.CatchUpWorkers, SubscriptionChecks: w.SubscriptionWorkers,
	}
}
