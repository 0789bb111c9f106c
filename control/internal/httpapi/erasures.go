package httpapi

import (
	"context"
	"net/http"
)

// eraseVisitor is E9.
func (a *API) eraseVisitor(ctx context.Context, r *request) (reply, error) {
	if err := a.cfg.Erasures.Visitor(ctx, r.params.connection, r.params.visitor); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted}, nil
}
