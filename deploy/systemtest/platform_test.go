package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/fakeprovider/fake"
	"storefront.internal/deploy/fakeprovider/forward"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// platform is the fake providers behind a real listener, with the receiver that hands their webhooks to a
// control.
type platform struct {
	t        *testing.T
	url      string
	receiver atomic.Pointer[forward.Receiver]
}

const (
	platformApp    = "4242"
	platformSecret = canary + "platform-secret-1"
)

func newPlatform(t *testing.T, c fake.Config) *platform {
	t.Helper()
	c.Seed, c.AppSecret = 7, platformSecret
	fakes := fake.New(c)
	t.Cleanup(fakes.Close)
	p := &platform{t: t}
	apis := fakes.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch to := p.receiver.Load(); {
		case !strings.HasPrefix(r.URL.Path, "/hooks/"):
			apis.ServeHTTP(w, r)
		case to == nil:
			w.WriteHeader(http.StatusBadGateway)
		default:
			to.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.url = server.URL
	return p
}

// configure makes a deployment use the platform.
func (p *platform) configure(s *stack.Settings) {
	s.ProviderURL, s.AppID, s.AppSecret = p.url, platformApp, platformSecret
}

// deliverTo hands webhooks to the control of a deployment from now on.
func (p *platform) deliverTo(x *deployment) {
	tokens := map[string]string{}
	for _, b := range providers() {
		tokens[b.name] = client.ConnectorToken(x.Settings.ConnectorToken, b.name)
	}
	p.receiver.Store(forward.New(forward.Config{Control: x.api.BaseURL, Tokens: tokens}))
}

// shop is a shop of the platform whose merchant has installed our app.
type shop struct {
	*storefront
	x         *deployment
	p         *platform
	provider  provider
	id        string
	installed client.Installed
}

// installShop installs a new shop of the first provider and issues a storefront key.
func (x *deployment) installShop(p *platform) *shop { return x.installShopAt(p, providers()[0]) }

// installShopAt installs a new shop of a provider.
func (x *deployment) installShopAt(p *platform, b provider) *shop {
	x.t.Helper()
	s := &shop{x: x, p: p, provider: b, id: b.storeID()}
	s.installed = s.install(b.token())
	if !s.installed.Created {
		x.t.Errorf("first installation: %+v", s.installed)
	}
	key, err := x.api.IssueKey(x.t.Context(), s.installed.ConnectionID)
	check(x.t, err)
	s.storefront = &storefront{t: x.t, Storefront: client.Storefront{ConnectionID: s.installed.ConnectionID,
		Key: key.Secret}}
	return s
}

func (s *shop) install(token string) client.Installed {
	s.x.t.Helper()
	got, err := s.tryInstall(token)
	check(s.x.t, err)
	return got
}

func (s *shop) tryInstall(token string) (client.Installed, error) {
	return s.x.api.OpenInstallation(s.x.t.Context(), client.Installation{
		Provider: s.provider.name, AppID: platformApp, ExternalStoreID: s.id, AccessToken: token,
		Profile: map[string]string{"language": s.provider.language, "currency": s.provider.currency},
	})
}

// loaded waits until the shop's catalog is loaded.
func (s *shop) loaded() client.BootstrapRun {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	run, err := s.x.api.AwaitCatalog(ctx, s.ConnectionID)
	check(s.t, err)
	return run
}

// item is the item id of a product.
func (s *shop) item(externalID string) string {
	return string(catalog.NewItemID(ident.ConnectionID(s.ConnectionID), externalID))
}

// debug calls a debug route about the shop, which must answer with a 2xx.
func (s *shop) debug(method, path string, in, out any) {
	s.t.Helper()
	if status, err := s.ask(method, path, in, out); err != nil || status >= 300 {
		s.t.Fatalf("%s %s: %d %v", method, path, status, err)
	}
}

// ask calls a debug route about the shop.
func (s *shop) ask(method, path string, in, out any) (status int, err error) {
	name := s.provider.name
	if name == "" {
		name = client.ConnectorProvider
	}
	return ask(s.t, method, s.p.url+"/"+name+"/debug/"+path+"?store="+s.id, in, out)
}

// ask makes a request and decodes the body of a 2xx.
func ask(t *testing.T, method, url string, in, out any) (status int, err error) {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		return 0, err
	}
	res, err := httpClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && out != nil && res.StatusCode < 300 {
		err = json.Unmarshal(text, out)
	}
	return res.StatusCode, err
}

// change gives a product another name at the provider; no webhook is sent.
func (s *shop) change(externalID, title string) {
	s.t.Helper()
	s.debug(http.MethodPut, "products/"+externalID,
		map[string]any{"name": map[string]string{"es": title}, "published": true}, nil)
}

// webhook tells the platform which webhook to send.
type webhook struct {
	Topic      string `json:"topic"`
	ExternalID string `json:"external_id"`
	Repeat     int    `json:"repeat,omitempty"`
	Forge      string `json:"forge,omitempty"`
	DelayMS    int    `json:"delay_ms,omitempty"`
}

// announce lets the platform send a webhook and compares the status of every response that it got.
func (s *shop) announce(w webhook, status int) {
	s.t.Helper()
	var answer struct {
		Deliveries []struct {
			Status int    `json:"status"`
			Error  string `json:"error"`
		} `json:"deliveries"`
	}
	s.debug(http.MethodPost, "webhooks", w, &answer)
	if len(answer.Deliveries) != max(w.Repeat, 1) && w.DelayMS == 0 {
		s.t.Errorf("%+v: %d deliveries", w, len(answer.Deliveries))
	}
	for _, d := range answer.Deliveries {
		if d.Status != status {
			s.t.Errorf("%+v was answered %+v, want %d", w, d, status)
		}
	}
}

// subscribed returns nil when the platform has one subscription to each topic that matters.
func (s *shop) subscribed() error {
	var answer struct {
		Subscriptions []struct{ Topic, URL string }
	}
	s.debug(http.MethodGet, "subscriptions", nil, &answer)
	seen := map[string]int{}
	for _, one := range answer.Subscriptions {
		seen[one.Topic]++
	}
	for topic, n := range seen {
		if n != 1 {
			return fmt.Errorf("%d subscriptions to %s", n, topic)
		}
	}
	for _, topic := range []string{"product/created", "product/updated", "product/deleted",
		"category/updated", "app/uninstalled"} {
		if seen[topic] == 0 {
			return fmt.Errorf("no subscription to %s, only %v", topic, seen)
		}
	}
	return nil
}

// compareCatalog returns nil when the archived catalog has exactly the products and categories of the
// provider, byte for byte.
func (s *shop) compareCatalog() error {
	for entity, kind := range map[string]string{"product": "products", "category": "categories"} {
		var there struct{ IDs []int64 }
		s.debug(http.MethodGet, kind, nil, &there)
		got, err := s.archived(entity)
		if err != nil {
			return err
		}
		if len(got) != len(there.IDs) {
			return fmt.Errorf("%d %s, the provider has %d", len(got), kind, len(there.IDs))
		}
		for _, id := range there.IDs {
			name := strconv.FormatInt(id, 10)
			var want, have any
			s.debug(http.MethodGet, kind+"/"+name, nil, &want)
			if err := json.Unmarshal(got[name], &have); err != nil || !reflect.DeepEqual(want, have) {
				return fmt.Errorf("%s %s is %.300s, the provider's is %.300v (%w)", entity, name, got[name],
					want, err)
			}
		}
	}
	return nil
}

// archived are the provider's bytes of the applied observations, by external id.
func (s *shop) archived(entity string) (map[string][]byte, error) {
	rows, err := s.x.pool.Query(context.Background(), `SELECT e.external_id, o.raw FROM control.entities e
		JOIN control.observations o USING (observation_id)
		WHERE e.connection_id = $1 AND e.entity = $2 AND e.operation = 'upsert'`, s.ConnectionID, entity)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	var id string
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &raw}, func() error {
		all[id] = bytes.Clone(raw)
		return nil
	})
	return all, err
}

// revision is the number of changes of a product that were applied.
func (s *shop) revision(externalID string) int {
	s.t.Helper()
	return s.x.number("SELECT revision FROM control.entities WHERE connection_id = $1 AND entity = "+
		"'product' AND external_id = $2",
		s.ConnectionID, externalID)
}

// history is what the archive holds of a product, a line for each observation.
func (s *shop) history(externalID string) string {
	s.t.Helper()
	rows, err := s.x.pool.Query(context.Background(), "SELECT format('%s %s %s %s %s', received_at, revision, "+
		"operation, state, convert_from(raw, 'UTF8')) FROM control.observations WHERE connection_id = $1 AND "+
		"entity = 'product' AND external_id = $2 ORDER BY observation_id", s.ConnectionID, externalID)
	check(s.t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(s.t, err)
	return strings.Join(lines, "\n")
}

// deliveries is the number of webhooks of the shop that were accepted.
func (s *shop) deliveries() int {
	s.t.Helper()
	return s.x.number("SELECT count(*) FROM control.webhook_deliveries WHERE connection_id = $1",
		s.ConnectionID)
}
