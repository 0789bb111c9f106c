package httpapi

import (
	"context"
	"net/http"
)

// eraseVisitor is erase_visitor.
func (a *API) eraseVisitor(ctx context.Context, r *request) (reply, error) {
	if err := a.cfg.Erasures.EraseVisitor(ctx, r.params.connection, r.params.visitor); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted}, nil
}
