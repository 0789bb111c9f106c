package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"storefront.internal/deploy/local/services"
)

// connect makes the custom connection and its storefront key by the real operations. A connection that is there already is
// used again; one that is there but that we know nothing of (its token was shown to somebody else) gets a sibling.
func connect(ctx context.Context, api services.Internal, s *state) error {
	c, err := api.CreateConnection(ctx, s.ExternalStoreID)
	if connected(err) && s.Connection.ConnectionID == "" {
		s.ExternalStoreID = "demo-store-" + secret()[:8]
		c, err = api.CreateConnection(ctx, s.ExternalStoreID)
	}
	switch {
	case err == nil:
		s.Connection, s.Key = c, ""
	case !connected(err):
		return fmt.Errorf("create the custom connection: %w", err)
	}
	return ensureKey(ctx, api, s.Connection.ConnectionID, &s.Key)
}

// ensureKey makes known a storefront key of a connection: the one that was remembered, or a new one.
func ensureKey(ctx context.Context, api services.Internal, connectionID string, known *string) error {
	keys, err := api.Keys(ctx, connectionID)
	if err != nil {
		return fmt.Errorf("list the storefront keys: %w", err)
	}
	for _, key := range keys {
		if key.Secret != "" && key.Secret == *known {
			return nil
		}
	}
	key, err := api.IssueKey(ctx, connectionID)
	if err != nil {
		return fmt.Errorf("issue a storefront key: %w", err)
	}
	*known = key.Secret
	return nil
}

func connected(err error) bool {
	var status *services.StatusError
	return errors.As(err, &status) && status.Status == http.StatusConflict
}
