package httpapi

import (
	"context"
	"net/http"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/shared/catalog"
)

// maxResources is the most resources that operation 8 may name, doubles counted.
const maxResources = 16

// openLoad is operation 8.
func (a *API) openLoad(ctx context.Context, r *request) (reply, error) {
	resources, err := readLoad(r)
	if err != nil {
		return reply{}, err
	}
	run, err := a.cfg.Loads.Open(ctx, r.params.connection, resources)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusAccepted, struct {
		CommandID string `json:"command_id"`
		RunID     string `json:"bootstrap_run_id"`
	}{string(run.CommandID), string(run.ID)})
}

func readLoad(r *request) ([]string, error) {
	raw, err := readBody(r.http)
	if err != nil {
		return nil, err
	}
	body, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	named := body.text("connection_id")
	if _, present := body.members["connection_id"]; !present {
		body.form.fault("/connection_id", "missing", "Is required.")
	} else if named != nil && *named != string(r.params.connection) {
		body.form.fault("/connection_id", "invalid_id", "Is not the connection of the path.")
	}
	resources := body.texts("resources", maxResources)
	return resources, body.form.err()
}

// viewLoad is E7's view of a run.
func (a *API) viewLoad(ctx context.Context, r *request) (reply, error) {
	run, err := a.cfg.Loads.Run(ctx, r.params.connection, r.params.run)
	if err != nil {
		return reply{}, err
	}
	type counts struct {
		Read    int64 `json:"read"`
		Changed int64 `json:"changed"`
		Deleted int64 `json:"deleted"`
	}
	out := struct {
		RunID     string                    `json:"bootstrap_run_id"`
		State     bootstrap.State           `json:"state"`
		Resources map[catalog.Entity]counts `json:"resources"`
		Reason    string                    `json:"reason,omitempty"`
	}{string(run.ID), run.State, make(map[catalog.Entity]counts, len(run.Resources)), run.Reason}
	for e, p := range run.Resources {
		out.Resources[e] = counts{p.Read, p.Changed, p.Deleted}
	}
	return jsonReply(http.StatusOK, out)
}
