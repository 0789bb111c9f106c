package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"storefront.internal/deploy/stack/poll"
)

// Installation is what a platform connector knows when a merchant has granted our app access.
type Installation struct {
	Provider        string            `json:"provider"`
	AppID           string            `json:"provider_app_id"`
	ExternalStoreID string            `json:"external_store_id"`
	AccessToken     string            `json:"access_token"`
	Scope           string            `json:"scope,omitempty"`
	Profile         map[string]string `json:"store_profile,omitempty"`
}

// Installed is the response to OpenInstallation.
type Installed struct {
	InstallationID string `json:"installation_id"`
	ConnectionID   string `json:"connection_id"`
	EndpointID     string `json:"webhook_endpoint_id"`
	Created        bool   `json:"created"`
}

// OpenInstallation installs a shop of a platform.
func (c Internal) OpenInstallation(ctx context.Context, i Installation) (Installed, error) {
	var out Installed
	err := c.call(ctx, http.MethodPost, "/installations", ConnectorToken(c.ConnectorToken, i.Provider), i,
		&out)
	return out, err
}

// ConnectionView is the state of a connection and of its installation.
type ConnectionView struct {
	State        string `json:"state"`
	Installation struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"installation"`
}

// ViewConnection reads the state of a connection.
func (c Internal) ViewConnection(ctx context.Context, connectionID string) (ConnectionView, error) {
	var out ConnectionView
	err := c.call(ctx, http.MethodGet, "/connections/"+connectionID, c.ConnectorToken, nil, &out)
	return out, err
}

// BootstrapRun is one load of a shop's whole catalog.
type BootstrapRun struct {
	BootstrapRunID string              `json:"bootstrap_run_id"`
	State          string              `json:"state"`
	Reason         string              `json:"reason"`
	Resources      map[string]Resource `json:"resources"`
}

// Resource is the progress of a run with one kind of entity.
type Resource struct {
	Read    int `json:"read"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
}

// OpenBootstrap opens a bootstrap run and returns its id. When one runs already, that one's id is returned.
func (c Internal) OpenBootstrap(ctx context.Context, connectionID string) (string, error) {
	var out BootstrapRun
	body := map[string]string{"connection_id": connectionID}
	err := c.call(ctx, http.MethodPost, "/connections/"+connectionID+"/bootstrap", c.ConnectorToken, body,
		&out)
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusConflict {
		err = json.Unmarshal([]byte(status.Body), &out)
	}
	return out.BootstrapRunID, err
}

// ViewBootstrap reads the progress of a bootstrap run.
func (c Internal) ViewBootstrap(ctx context.Context, connectionID, runID string) (BootstrapRun, error) {
	var out BootstrapRun
	err := c.call(ctx, http.MethodGet, "/connections/"+connectionID+"/bootstrap/"+runID, c.ConnectorToken,
		nil, &out)
	return out, err
}

// AwaitCompletion waits until a bootstrap run is completed. A failed run is an error.
func (c Internal) AwaitCompletion(ctx context.Context, connectionID, runID string) (BootstrapRun, error) {
	var run BootstrapRun
	err := poll.Until(ctx, "bootstrap run "+runID, func() (err error) {
		switch run, err = c.ViewBootstrap(ctx, connectionID, runID); {
		case err != nil:
			return poll.Permanent(err)
		case run.State == "failed":
			return poll.Permanent(errors.New("it failed: " + run.Reason))
		case run.State != "completed":
			return errors.New("it is " + run.State)
		}
		return nil
	})
	return run, err
}

// AwaitCatalog waits until an installation is completed and a bootstrap run has ended: the one that the
// installation opened, or a new one when that had ended before its id could be read.
func (c Internal) AwaitCatalog(ctx context.Context, connectionID string) (BootstrapRun, error) {
	err := poll.Until(ctx, "the installation of "+connectionID, func() error {
		switch v, err := c.ViewConnection(ctx, connectionID); {
		case err != nil:
			return poll.Permanent(err)
		case v.Installation.State == "failed":
			return poll.Permanent(errors.New("it failed: " + v.Installation.Reason))
		case v.Installation.State != "completed":
			return errors.New("it is " + v.Installation.State)
		}
		return nil
	})
	if err != nil {
		return BootstrapRun{}, err
	}
	id, err := c.OpenBootstrap(ctx, connectionID)
	if err != nil {
		return BootstrapRun{}, fmt.Errorf("open a bootstrap run: %w", err)
	}
	return c.AwaitCompletion(ctx, connectionID, id)
}
