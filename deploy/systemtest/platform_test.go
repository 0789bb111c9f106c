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
	"storefront.internal/deploy/local/services"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/ident"
)

// platform is the fake providers behind a real port, with the receiver that hands their webhooks to a control.
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

// configure tells a deployment of the platform.
func (p *platform) configure(s *services.Settings) {
	s.ProviderURL, s.AppID, s.AppSecret = p.url, platformApp, platformSecret
}

// deliversTo has webhooks handed to a control from now on.
func (p *platform) deliversTo(x *topology) {
	tokens := map[string]string{}
	for _, b := range brands() {
		tokens[b.name] = services.ConnectorTokenOf(x.settings.ConnectorToken, b.name)
	}
	p.receiver.Store(forward.New(forward.Config{Control: x.api.BaseURL, Tokens: tokens}))
}

// store is a shop at the platform that has let our app in.
type store struct {
	*shop
	x         *topology
	p         *platform
	brand     brand
	id        string
	installed services.Installed
}

// opens installs a store of the first brand that nobody knew (operation 5) and makes a storefront key.
func (x *topology) opens(p *platform) *store { return x.opensAt(p, brands()[0]) }

// opensAt does so at a brand.
func (x *topology) opensAt(p *platform, b brand) *store {
	x.t.Helper()
	s := &store{x: x, p: p, brand: b, id: b.storeID()}
	s.installed = s.install(b.token())
	if !s.installed.Created {
		x.t.Errorf("first installation: %+v", s.installed)
	}
	key, err := x.api.IssueKey(x.t.Context(), s.installed.ConnectionID)
	check(x.t, err)
	s.shop = &shop{t: x.t, connection: s.installed.ConnectionID, key: key.Secret}
	return s
}

func (s *store) install(token string) services.Installed {
	s.x.t.Helper()
	got, err := s.installs(token)
	check(s.x.t, err)
	return got
}

func (s *store) installs(token string) (services.Installed, error) {
	return s.x.api.Install(s.x.t.Context(), services.Installation{
		Provider: s.brand.name, AppID: platformApp, ExternalStoreID: s.id, AccessToken: token,
		Profile: map[string]string{"language": s.brand.language, "currency": s.brand.currency},
	})
}

// loaded waits until the store's catalog is there.
func (s *store) loaded() services.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	run, err := s.x.api.Loaded(ctx, s.connection)
	check(s.t, err)
	return run
}

// item is our id of a product.
func (s *store) item(externalID string) string {
	return string(catalog.NewItemID(ident.ConnectionID(s.connection), externalID))
}

// debug asks a debug route about the store, and wants one of the answers 2xx.
func (s *store) debug(method, path string, in, out any) {
	s.t.Helper()
	if status, err := s.ask(method, path, in, out); err != nil || status >= 300 {
		s.t.Fatalf("%s %s: %d %v", method, path, status, err)
	}
}

// ask asks a debug route about the store.
func (s *store) ask(method, path string, in, out any) (status int, err error) {
	provider := s.brand.name
	if provider == "" {
		provider = services.ConnectorProvider
	}
	return ask(s.t, method, s.p.url+"/"+provider+"/debug/"+path+"?store="+s.id, in, out)
}

// ask makes a request and decodes an answer that is 2xx.
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
	res, err := wire.Do(r)
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

// change gives a product another name at the provider, which tells nobody.
func (s *store) change(externalID, title string) {
	s.t.Helper()
	s.debug(http.MethodPut, "products/"+externalID, map[string]any{"name": map[string]string{"es": title}, "published": true}, nil)
}

// webhook is an order to the platform to send one.
type webhook struct {
	Topic      string `json:"topic"`
	ExternalID string `json:"external_id"`
	Repeat     int    `json:"repeat,omitempty"`
	Forge      string `json:"forge,omitempty"`
	DelayMS    int    `json:"delay_ms,omitempty"`
}

// announce has the platform send a webhook and compares every answer that it got.
func (s *store) announce(w webhook, status int) {
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

// subscribed compares what the platform delivers to: one subscription for each topic.
func (s *store) subscribed() error {
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
	for _, topic := range []string{"product/created", "product/updated", "product/deleted", "category/updated", "app/uninstalled"} {
		if seen[topic] == 0 {
			return fmt.Errorf("no subscription to %s, only %v", topic, seen)
		}
	}
	return nil
}

// truth compares the catalog with the provider's: every product and category that is there, as it is there, and no other.
func (s *store) truth() error {
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
				return fmt.Errorf("%s %s is %.300s, the provider's is %.300v (%w)", entity, name, got[name], want, err)
			}
		}
	}
	return nil
}

// archived are the provider's bytes of what is applied, by external id.
func (s *store) archived(entity string) (map[string][]byte, error) {
	rows, err := s.x.pool.Query(context.Background(), `SELECT e.external_id, o.raw FROM control.entities e
		JOIN control.observations o USING (observation_id)
		WHERE e.connection_id = $1 AND e.entity = $2 AND e.operation = 'upsert'`, s.connection, entity)
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

// revision is how often we took a change of a product.
func (s *store) revision(externalID string) int {
	s.t.Helper()
	return s.x.number("SELECT revision FROM control.entities WHERE connection_id = $1 AND entity = 'product' AND external_id = $2",
		s.connection, externalID)
}

// deliveries is how many webhooks of the store were taken.
func (s *store) deliveries() int {
	s.t.Helper()
	return s.x.number("SELECT count(*) FROM control.webhook_deliveries WHERE connection_id = $1", s.connection)
}
