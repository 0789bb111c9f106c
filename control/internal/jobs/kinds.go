package jobs

import (
	"cmp"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// The queues beside River's default one. Work that waits for providers, and bulk work of the catalog, must
// not keep keys from being pushed, and work that comes back by itself must not keep a new shop waiting.
const (
	queuePush         = "catalog_push"
	queueRecompose    = "catalog_recompose"
	queueInstallation = "installation"
	queueRefresh      = "entity_refresh"
	queueFirstLoad    = "first_load"
	queueLoad         = "shop_load" // also catch-ups that earlier releases enqueued
	queueCatchUp      = "catch_up"
	queueSubscription = "subscription_check"
)

// Workers is how many jobs of each kind of work for shops one process runs at a time. A zero means the
// default.
type Workers struct{ Installations, Refreshes, FirstLoads, Loads, CatchUps, SubscriptionChecks int }

// The defaults of Workers.
const (
	DefaultInstallations      = 8
	DefaultRefreshes          = 16
	DefaultFirstLoads         = 4
	DefaultLoads              = 4
	DefaultCatchUps           = 8
	DefaultSubscriptionChecks = 4
)

// queues returns how many jobs of each queue one process runs at a time.
func (w Workers) queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{
		river.QueueDefault: {MaxWorkers: 8},
		queuePush:          {MaxWorkers: 4},
		queueRecompose:     {MaxWorkers: 2},
		queueInstallation:  {MaxWorkers: cmp.Or(w.Installations, DefaultInstallations)},
		queueRefresh:       {MaxWorkers: cmp.Or(w.Refreshes, DefaultRefreshes)},
		queueFirstLoad:     {MaxWorkers: cmp.Or(w.FirstLoads, DefaultFirstLoads)},
		queueLoad:          {MaxWorkers: cmp.Or(w.Loads, DefaultLoads)},
		queueCatchUp:       {MaxWorkers: cmp.Or(w.CatchUps, DefaultCatchUps)},
		queueSubscription:  {MaxWorkers: cmp.Or(w.SubscriptionChecks, DefaultSubscriptionChecks)},
	}
}

// onePerArgs lets one unfinished job exist for the same arguments.
func onePerArgs() river.UniqueOpts {
	return river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}
}

// onePerQueue is onePerArgs within a queue. It is for kinds whose jobs earlier releases put into another
// queue and look for there: after a return to such a release, a job that nobody fetches must not keep it from
// enqueuing its own.
func onePerQueue() river.UniqueOpts {
	opts := onePerArgs()
	opts.ByQueue = true
	return opts
}

// keyPush copies the changes of keys to Redis. Only the previous release enqueues it; the next one removes
// it.
type keyPush struct {
	KeyID ident.KeyID `json:"api_key_id"`
}

func (keyPush) Kind() string                 { return "key_push" }
func (keyPush) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: retryForever} }

// itemPush writes items that one transaction changed to Redis. Package postgres measures how long jobs of
// this kind wait.
type itemPush struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	ItemIDs      []ident.ItemID     `json:"item_ids"`
}

func (itemPush) Kind() string { return "item_push" }
func (itemPush) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever, Queue: queuePush}
}

// recompose gives the items of changed categories new bodies.
type recompose struct {
	ConnectionID ident.ConnectionID   `json:"connection_id"`
	TaxonomyIDs  []catalog.TaxonomyID `json:"taxonomy_ids"`
}

func (recompose) Kind() string { return "item_recompose" }
func (recompose) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever, Queue: queueRecompose}
}

// refresh fetches one entity of a provider. One job per entity is enough: a running one sees the marks that
// are set meanwhile, since it completes in the transaction that compares the mark.
type refresh struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	Entity       catalog.Entity     `json:"entity"`
	ExternalID   string             `json:"external_id"`
}

func (refresh) Kind() string { return "entity_refresh" }
func (refresh) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever, Queue: queueRefresh, UniqueOpts: onePerArgs()}
}

// shopCheck asks a provider whether a shop may be called. Only a periodic one is unique: one that runs may
// have asked too early, and only the periodic one comes again.
type shopCheck struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	Uninstalled  bool               `json:"uninstalled"` // a webhook said so
	Periodic     bool               `json:"periodic,omitempty"`
}

func (shopCheck) Kind() string { return "shop_check" }
func (c shopCheck) InsertOpts() river.InsertOpts {
	opts := river.InsertOpts{MaxAttempts: retryForever, Queue: queueRefresh}
	if c.Periodic {
		opts.Priority, opts.UniqueOpts = lastPriority, onePerArgs()
	}
	return opts
}

// lastPriority is River's lowest priority.
const lastPriority = 4

// bootstrapRun works a bootstrap run for one slice of time, and snoozes until the run has ended.
type bootstrapRun struct {
	RunID   ident.RunID       `json:"bootstrap_run_id"`
	Urgency bootstrap.Urgency `json:"-"`
}

func (bootstrapRun) Kind() string { return "bootstrap_load" }

// InsertOpts gives first loads their own workers. Of the others, a run that somebody asked for goes first.
func (r bootstrapRun) InsertOpts() river.InsertOpts {
	opts := river.InsertOpts{MaxAttempts: retryForever, Queue: queueLoad, UniqueOpts: onePerQueue()}
	switch r.Urgency {
	case bootstrap.First:
		opts.Queue = queueFirstLoad
	case bootstrap.Requested:
	case bootstrap.Periodic:
		opts.Priority = lastPriority
	}
	return opts
}

// catchUp reads what was updated in a shop. What a running one misses is read by the next periodic one.
type catchUp struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
}

func (catchUp) Kind() string { return "catch_up" }
func (catchUp) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 5, Queue: queueCatchUp, UniqueOpts: onePerQueue()}
}

// subscriptionCheck repairs the subscriptions of a shop. One that failed is not tried again; the next
// periodic one comes. Its attempts are for a process that dies.
type subscriptionCheck struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
}

func (subscriptionCheck) Kind() string { return "subscription_check" }
func (subscriptionCheck) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 5, Queue: queueSubscription, UniqueOpts: onePerArgs()}
}

// privacyRequest executes a request about personal data.
type privacyRequest struct {
	RequestID ident.WebhookEventID `json:"privacy_request_id"`
}

func (privacyRequest) Kind() string { return "privacy_request" }
func (privacyRequest) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever}
}

// installationSaga advances an installation. It is the only timer of a saga: it snoozes until the next
// attempt is due. A job with BesideAttempt runs once beside that attempt of the saga's job and sets no timer.
type installationSaga struct {
	InstallationID ident.InstallationID `json:"installation_id"`
	Epoch          int                  `json:"epoch"`
	BesideAttempt  int                  `json:"beside_attempt,omitempty"`
}

func (installationSaga) Kind() string { return "installation_saga" }
func (installationSaga) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever, Queue: queueInstallation, UniqueOpts: onePerArgs()}
}

// A periodic job that failed is tried again, and the next one is not enqueued before it has ended.
// requeueInstallations and
// requeueBootstraps keep the kinds of the release before, whose workers run beside this release's during an
// update.
type (
	archiveUpkeep        struct{}
	requeueCatchUps      struct{}
	requeueBootstraps    struct{}
	requeueInstallations struct{}
	subscriptionSweep    struct{}
	secretReseal         struct{}
	markedSweep          struct{}
)

func (archiveUpkeep) Kind() string        { return "archive_upkeep" }
func (requeueCatchUps) Kind() string      { return "catch_ups" }
func (requeueBootstraps) Kind() string    { return "resume_loads" }
func (requeueInstallations) Kind() string { return "installation_wake" }
func (subscriptionSweep) Kind() string    { return "subscription_sweep" }
func (secretReseal) Kind() string         { return "secret_reseal" }

func (markedSweep) Kind() string { return "marked_sweep" }

func (archiveUpkeep) InsertOpts() river.InsertOpts        { return periodicOpts(river.QueueDefault) }
func (requeueCatchUps) InsertOpts() river.InsertOpts      { return periodicOpts(river.QueueDefault) }
func (requeueBootstraps) InsertOpts() river.InsertOpts    { return periodicOpts(river.QueueDefault) }
func (requeueInstallations) InsertOpts() river.InsertOpts { return periodicOpts(river.QueueDefault) }
func (secretReseal) InsertOpts() river.InsertOpts         { return periodicOpts(river.QueueDefault) }
func (markedSweep) InsertOpts() river.InsertOpts          { return periodicOpts(river.QueueDefault) }
func (subscriptionSweep) InsertOpts() river.InsertOpts    { return periodicOpts(queueInstallation) }

// periodicAttempts outlast a restart of PostgreSQL: the last one comes after nine minutes.
const periodicAttempts = 20

func periodicOpts(queue string) river.InsertOpts {
	return river.InsertOpts{MaxAttempts: periodicAttempts, Queue: queue, UniqueOpts: onePerArgs()}
}

// kinds returns every kind of job, for metrics.
func kinds() []string {
	all := []river.JobArgs{keyPush{}, itemPush{}, recompose{}, refresh{}, shopCheck{}, bootstrapRun{},
		catchUp{}, privacyRequest{}, installationSaga{}, archiveUpkeep{}, requeueCatchUps{},
		requeueBootstraps{}, requeueInstallations{}, subscriptionSweep{}, subscriptionCheck{},
		secretReseal{}, markedSweep{}}
	names := make([]string, len(all))
	for i, args := range all {
		names[i] = args.Kind()
	}
	return names
}
