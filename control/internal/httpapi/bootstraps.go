package httpapi

import (
	"context"
	"net/http"

	"storefront.internal/control/internal/bootstrap"
	"storefront.internal/shared/catalog"
)

// maxResources is the most resources that a request may name, repeated ones counted.
const maxResources = 16

// openBootstrap is open_bootstrap.
func (a *API) openBootstrap(ctx context.Context, r *request) (reply, error) {
	resources, err := readBootstrap(r)
	if err != nil {
		return reply{}, err
	}
	run, err := a.cfg.Bootstraps.OpenRun(ctx, r.params.connection, resources)
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusAccepted, struct {
		CommandID string `json:"command_id"`
		RunID     string `json:"bootstrap_run_id"`
	}{string(run.CommandID), string(run.ID)})
}

func readBootstrap(r *request) ([]string, error) {
	body, err := readObject(r.http)
	if err != nil {
		return nil, err
	}
	named := body.stringMember("connection_id")
	body.require("connection_id")
	if named != nil && *named != string(r.params.connection) {
		body.form.addError("/connection_id", "invalid_id", "Is not the connection of the path.")
	}
	resources := body.stringArray("resources", maxResources)
	return resources, body.form.err()
}

// viewBootstrap is view_bootstrap.
func (a *API) viewBootstrap(ctx context.Context, r *request) (reply, error) {
	run, err := a.cfg.Bootstraps.Run(ctx, r.params.connection, r.params.run)
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
