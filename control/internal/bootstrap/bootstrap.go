// Package bootstrap owns loads (spec.md "Open the initial load of a connection"; contract, section 3 "Bootstrap"): a run
// reads a shop's resources page by page through the path that every fetched entity takes, and saves its place in the
// transaction of each page, so that it goes on there after a crash. Pages carry the number that was taken before they were
// asked for: a notification that is fetched meanwhile wins over an older page.
//
//	queued ──▶ running ──▶ completed
//	              └──────▶ failed (the reason is shown)
//
// A listing does not tell of entities that are gone. So behind its last page a run asks for each one that is known and was
// not in it, and only the provider's "not found" deletes. A catch-up reads what was updated since the last one.
//
// The package refuses to page a provider by itself (adapters do), and to run twice: a save that does not follow the last
// one ends the worker that tried it.
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

// State is how far a run is.
type State string

// The closed set of states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// Phase is how far a resource of a run is.
type Phase string

// The phases, in their order.
const (
	Listing Phase = ""        // pages are read
	Missing Phase = "missing" // what is known and was in no page is asked for
	Done    Phase = "done"
)

// Progress is how far a resource is. It is saved with each page.
type Progress struct {
	Phase    Phase           `json:"phase,omitempty"`
	Cursor   provider.Cursor `json:"cursor,omitempty"`
	First    int64           `json:"first,omitempty"`    // number before the first page
	Exported int64           `json:"exported,omitempty"` // number before the provider's last snapshot began
	After    string          `json:"after,omitempty"`    // last one that was asked for, of the missing
	Saves    int64           `json:"saves,omitempty"`    // fences a worker that was taken for dead
	Read     int64           `json:"read"`
	Changed  int64           `json:"changed"`
	Deleted  int64           `json:"deleted"`
}

// Run is a load.
type Run struct {
	ID           ident.RunID
	CommandID    ident.CommandID
	ConnectionID ident.ConnectionID
	State        State
	Reason       string // of a failed one
	Failures     int    // attempts in a row that brought nothing
	Resources    map[catalog.Entity]*Progress
}

// order is that of the resources of a run: items find their categories' names when these are there.
func order() []catalog.Entity {
	return []catalog.Entity{catalog.Category, catalog.Product, catalog.Order}
}

// next is the first resource that is not done.
func (r *Run) next() (catalog.Entity, *Progress) {
	for _, e := range order() {
		if p := r.Resources[e]; p != nil && p.Phase != Done {
			return e, p
		}
	}
	return "", nil
}

// NewRun returns a run of resources; empty means products and categories.
func NewRun(c ident.ConnectionID, resources []catalog.Entity, now time.Time) Run {
	if len(resources) == 0 {
		resources = []catalog.Entity{catalog.Product, catalog.Category}
	}
	r := Run{
		ID: ident.RunID(ident.Mint(ident.Run, now)), CommandID: ident.CommandID(ident.Mint(ident.Command, now)),
		ConnectionID: c, State: Queued, Resources: make(map[catalog.Entity]*Progress),
	}
	for _, e := range resources {
		r.Resources[e] = &Progress{}
	}
	return r
}

// Runs is where runs are opened and looked at. Each method is one transaction.
type Runs interface {
	// Open stores a run with its job. It returns not_found for a connection that no provider has, and bootstrap_running,
	// which names the run, while one runs.
	Open(ctx context.Context, r Run) error
	// Run returns not_found for one that is not there, or of another connection.
	Run(ctx context.Context, c ident.ConnectionID, id ident.RunID) (Run, error)
}

// Service is operation 8 and its view.
type Service struct {
	runs Runs
	now  func() time.Time
}

// New returns a Service.
func New(runs Runs, now func() time.Time) *Service { return &Service{runs: runs, now: now} }

// Open is operation 8. resources are names of entities, in any order and number.
func (s *Service) Open(ctx context.Context, c ident.ConnectionID, resources []string) (Run, error) {
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
	return r, s.runs.Open(ctx, r)
}

// Run is the view of a run (E7).
func (s *Service) Run(ctx context.Context, c ident.ConnectionID, id ident.RunID) (Run, error) {
	return s.runs.Run(ctx, c, id)
}
