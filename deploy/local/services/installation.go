package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Installation is what a platform connector knows when a merchant has let our app in.
type Installation struct {
	Provider        string            `json:"provider"`
	AppID           string            `json:"provider_app_id"`
	ExternalStoreID string            `json:"external_store_id"`
	AccessToken     string            `json:"access_token"`
	Scope           string            `json:"scope,omitempty"`
	Profile         map[string]string `json:"store_profile,omitempty"`
}

// Installed is what operation 5 answers.
type Installed struct {
	InstallationID string `json:"installation_id"`
	ConnectionID   string `json:"connection_id"`
	EndpointID     string `json:"webhook_endpoint_id"`
	Created        bool   `json:"created"`
}

// Install installs a store (operation 5).
func (c Internal) Install(ctx context.Context, i Installation) (Installed, error) {
	var answer Installed
	err := c.call(ctx, http.MethodPost, "/internal/v1/installations", ConnectorTokenOf(c.ConnectorToken, i.Provider), i, &answer)
	return answer, err
}

// Progress is what extension E7 tells of a connection's installation.
type Progress struct {
	State        string `json:"state"` // of the connection
	Installation struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"installation"`
}

// Progress reads how far an installation is (extension E7).
func (c Internal) Progress(ctx context.Context, connectionID string) (Progress, error) {
	var answer Progress
	err := c.call(ctx, http.MethodGet, "/internal/v1/connections/"+connectionID, c.ConnectorToken, nil, &answer)
	return answer, err
}

// Run is a load of a store's catalog.
type Run struct {
	BootstrapRunID string              `json:"bootstrap_run_id"`
	State          string              `json:"state"`
	Reason         string              `json:"reason"`
	Resources      map[string]Resource `json:"resources"`
}

// Resource is how far a load is with one kind of entity.
type Resource struct {
	Read    int `json:"read"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
}

// Bootstrap opens a load (operation 8) and answers its run; one that is under way is as good.
func (c Internal) Bootstrap(ctx context.Context, connectionID string) (string, error) {
	var answer Run
	err := c.call(ctx, http.MethodPost, "/internal/v1/connections/"+connectionID+"/bootstrap", c.ConnectorToken,
		map[string]string{"connection_id": connectionID}, &answer)
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusConflict {
		err = json.Unmarshal([]byte(status.Body), &answer)
	}
	return answer.BootstrapRunID, err
}

// Run reads how far a load is (extension E7).
func (c Internal) Run(ctx context.Context, connectionID, runID string) (Run, error) {
	var answer Run
	err := c.call(ctx, http.MethodGet, "/internal/v1/connections/"+connectionID+"/bootstrap/"+runID, c.ConnectorToken, nil, &answer)
	return answer, err
}

const askEvery = 100 * time.Millisecond

// Loaded waits until an installation is completed and a load has ended: the one that the installation began, or where that
// ended before anybody could ask for it, another.
func (c Internal) Loaded(ctx context.Context, connectionID string) (Run, error) {
	err := until(ctx, func() (bool, error) {
		p, err := c.Progress(ctx, connectionID)
		if err == nil && p.Installation.State == "failed" {
			err = fmt.Errorf("the installation failed: %s", p.Installation.Reason)
		}
		return p.Installation.State == "completed", err
	})
	if err != nil {
		return Run{}, err
	}
	id, err := c.Bootstrap(ctx, connectionID)
	if err != nil {
		return Run{}, err
	}
	var run Run
	err = until(ctx, func() (bool, error) {
		var err error
		run, err = c.Run(ctx, connectionID, id)
		if err == nil && run.State == "failed" {
			err = fmt.Errorf("load %s failed: %s", id, run.Reason)
		}
		return run.State == "completed", err
	})
	return run, err
}

// until asks again and again until the answer is yes, or an error.
func until(ctx context.Context, ask func() (bool, error)) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
