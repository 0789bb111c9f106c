package stage

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"storefront.internal/deploy/fakeprovider/catalogue"
	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/services"
)

// Merchant is the fake provider's store, which is installed when a scenario wants it first. Connection is empty until then.
type Merchant struct{ Connection, endpoint string }

// Open installs the store and waits until it is loaded.
func (m *Merchant) Open(ctx context.Context, s *Stage) error {
	if m.Connection != "" {
		return nil
	}
	if err := m.Install(ctx, s); err != nil {
		return err
	}
	_, err := s.API().Loaded(ctx, m.Connection)
	return err
}

// Install installs the store (operation 5), which may be done again at any time.
func (m *Merchant) Install(ctx context.Context, s *Stage) error {
	got, err := s.API().Install(ctx, services.Installation{
		Provider: services.ConnectorProvider, AppID: s.Settings().AppID, ExternalStoreID: topology.StoreID, AccessToken: "demo-token",
		Scope: "read_products,read_orders", Profile: map[string]string{"name": "Tienda", "country": "AR", "language": "es", "currency": "ARS"},
	})
	if err != nil {
		return err
	}
	m.Connection, m.endpoint = got.ConnectionID, got.EndpointID
	return nil
}

// Change gives a product another name and delivers the provider's notification, whose bytes are always the same.
func (m *Merchant) Change(ctx context.Context, s *Stage, name string) error {
	product := strconv.Itoa(catalogue.FirstProduct)
	err := Post(ctx, http.MethodPut, s.Provider.URL+"/debug/products/"+product, map[string]any{"name": map[string]string{"es": name, "pt": name, "en": name}})
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"store_id":%s,"event":"product/updated","id":%s}`, topology.StoreID, product)
	mac := hmac.New(sha256.New, []byte(s.Settings().AppSecret))
	mac.Write([]byte(body))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Control.URL+"/internal/v1/webhooks/"+services.ConnectorProvider+"/"+m.endpoint, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.Settings().ConnectorToken)
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("X-Provider-Signature", hex.EncodeToString(mac.Sum(nil)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the notification was answered %s", answer.Status)
	}
	return nil
}
