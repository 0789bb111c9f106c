// Package bootstrap owns bootstrap runs, which read the catalog of a shop, and catch-ups, which read what was
// updated since the last one. A run reads page by page and saves its progress in the transaction of each
// page, so that it continues there after a crash. A page has the fetch sequence number that was taken before
// the request: an entity that is fetched for a webhook meanwhile wins over the older page.
//
//	queued ──▶ running ──▶ completed
//	              └──────▶ failed (with a reason)
//
// A listing does not tell which entities were deleted. So after the last page a run fetches each known entity
// that was in no page, and deletes it only when the provider answers "not found". Two workers of one run do
// no harm: a save must follow the last one, or it ends its worker with ErrSuperseded.
package bootstrap

import (
	"context"
	"slices"
	"time"

	"storefront.internal/control/internal/provider"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

// State is the state of a run.
type State string

// The closed set of states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// Phase is the phase of a resource of a run.
type Phase string

// The phases, in their order.
const (
	Listing Phase = ""        // pages are read
	Missing Phase = "missing" // known entities that were in no page are fetched
	Done    Phase = "done"
)

// Progress is the progress of a resource. It is saved with each page.
type Progress struct {
	Phase         Phase           `json:"phase,omitempty"`
	Cursor        provider.Cursor `json:"cursor,omitempty"`
	FirstFetchSeq int64           `json:"first,omitempty"` // taken before the first page
	// taken before the provider began its last export
	ExportFetchSeq int64 `json:"exported,omitempty"`
	// last entity that was fetched in phase Missing
	AfterID string `json:"after,omitempty"`
	// counts saves; fences a worker that was superseded
	Saves   int64 `json:"saves,omitempty"`
	Read    int64 `json:"read"`
	Changed int64 `json:"changed"`
	Deleted int64 `json:"deleted"`
}

// Urgency orders runs that wait for a worker.
type Urgency int

// The urgencies, the greatest first.
const (
	First     Urgency = iota // no run of the shop has completed, so it has no catalog yet
	Requested                // somebody asked for the run, or the shop came back
	Periodic                 // a reload
)

// Run is a bootstrap run.
type Run struct {
	ID           ident.RunID
	CommandID    ident.CommandID
	ConnectionID ident.ConnectionID
	State        State
	Reason       string // of the last failure
	Failures     int    // failed attempts in a row
	Resources    map[catalog.Entity]*Progress
}

// resourceOrder is the order in which a run reads: products get the names of categories that were read
// before.
func resourceOrder() []catalog.Entity {
	return []catalog.Entity{catalog.Category, catalog.Product, catalog.Order}
}

// next returns the first resource that is not done.
func (r *Run) next() (catalog.Entity, *Progress) {
	for _, e := range resourceOrder() {
		if p := r.Resources[e]; p != nil && p.Phase != Done {
			return e, p
		}
	}
	return "", nil
}

// NewRun returns a run of the resources; none means products and categories.
func NewRun(c ident.ConnectionID, resources []catalog.Entity, now time.Time) Run {
	if len(resources) == 0 {
		resources = []catalog.Entity{catalog.Product, catalog.Category}
	}
	r := Run{
		ID: ident.RunID(ident.Mint(ident.Run, now)), CommandID: ident.CommandID(ident.Mint(ident.Command,
			now)),
		ConnectionID: c, State: Queued, Resources: make(map[catalog.Entity]*Progress),
	}
	for _, e := range resources {
		r.Resources[e] = &Progress{}
	}
	return r
}

// RunStore opens and reads runs. Each method is one transaction.
type RunStore interface {
	// OpenRun stores a run and its job. It returns not_found for a connection that is not a provider's, and
	// bootstrap_running, which names the run, while one is unfinished.
	OpenRun(ctx context.Context, r Run) error
	// Run returns not_found for a run that does not exist or is of another connection.
	Run(ctx context.Context, c ident.ConnectionID, id ident.RunID) (Run, error)
}

// Service opens and shows runs.
type Service struct {
	runs RunStore
	now  func() time.Time
}

// New returns a Service.
func New(runs RunStore, now func() time.Time) *Service { return &Service{runs: runs, now: now} }

// OpenRun opens a run. resources are names of entities in any order, possibly repeated.
func (s *Service) OpenRun(ctx context.Context, c ident.ConnectionID, resources []string) (Run, error) {
	var entities []catalog.Entity
	for _, name := range resources {
		e, ok := catalog.ParseEntity(name)
		if !ok {
			return Run{}, fault.New(fault.UnknownResource, "A resource is product, category or order.")
		}
		if !slices.Contains(entities, e) {
			entities = append(entities, e)
		}
	}
	r := NewRun(c, entities, s.now())
	return r, s.runs.OpenRun(ctx, r)
}

// Run returns a run.
func (s *Service) Run(ctx context.Context, c ident.ConnectionID, id ident.RunID) (Run, error) {
	return s.runs.Run(ctx, c, id)
}
