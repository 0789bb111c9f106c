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
	keys, err := api.Keys(ctx, s.Connection.ConnectionID)
	if err != nil {
		return fmt.Errorf("list the storefront keys: %w", err)
	}
	for _, key := range keys {
		if key.Secret != "" && key.Secret == s.Key {
			return nil
		}
	}
	key, err := api.IssueKey(ctx, s.Connection.ConnectionID)
	if err != nil {
		return fmt.Errorf("issue a storefront key: %w", err)
	}
	s.Key = key.Secret
	return nil
}

func connected(err error) bool {
	var status *services.StatusError
	return errors.As(err, &status) && status.Status == http.StatusConflict
}
