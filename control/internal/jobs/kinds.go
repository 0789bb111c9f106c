package jobs

import (
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// The queues beside River's default one. Work that waits for providers, and bulk work of the catalog, must
// not keep keys from being pushed.
const (
	queuePush         = "catalog_push"
	queueRecompose    = "catalog_recompose"
	queueInstallation = "installation"
	queueRefresh      = "entity_refresh"
	queueBootstrap    = "shop_load"
)

// queues returns how many jobs of each queue one process runs at a time.
func queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{
		river.QueueDefault: {MaxWorkers: 8},
		queuePush:          {MaxWorkers: 4},
		queueRecompose:     {MaxWorkers: 2},
		queueInstallation:  {MaxWorkers: 8},
		queueRefresh:       {MaxWorkers: 16},
		queueBootstrap:     {MaxWorkers: 4},
	}
}

// onePerArgs lets one unfinished job exist for the same arguments.
func onePerArgs() river.UniqueOpts {
	return river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}
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

// shopCheck asks a provider whether a shop may be called. It is not unique: one that runs may have asked too
// early.
type shopCheck struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
	Uninstalled  bool               `json:"uninstalled"` // a webhook said so
}

func (shopCheck) Kind() string { return "shop_check" }
func (shopCheck) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever, Queue: queueRefresh}
}

// bootstrapRun works a bootstrap run for one slice of time, and snoozes until the run has ended.
type bootstrapRun struct {
	RunID ident.RunID `json:"bootstrap_run_id"`
}

func (bootstrapRun) Kind() string { return "bootstrap_load" }
func (bootstrapRun) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: retryForever, Queue: queueBootstrap, UniqueOpts: onePerArgs()}
}

// catchUp reads what was updated in a shop. What a running one misses is read by the next periodic one.
type catchUp struct {
	ConnectionID ident.ConnectionID `json:"connection_id"`
}

func (catchUp) Kind() string { return "catch_up" }
func (catchUp) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 5, Queue: queueBootstrap, UniqueOpts: onePerArgs()}
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
		requeueBootstraps{}, requeueInstallations{}, subscriptionSweep{}, secretReseal{}, markedSweep{}}
	names := make([]string, len(all))
	for i, args := range all {
		names[i] = args.Kind()
	}
	return names
}
