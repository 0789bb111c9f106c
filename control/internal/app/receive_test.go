package app

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"storefront.internal/shared/settings"
	"storefront.internal/shared/testkit"
)

// receiving is a running receiver in front of a real control, whose address can be cut off.
type receiving struct {
	*bundle
	receiver *ReceiverApp
	cut      atomic.Bool
	log      *testkit.Log
}

func newReceiving(t *testing.T) *receiving {
	t.Helper()
	r := &receiving{bundle: newBundle(t), log: &testkit.Log{}}
	control := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.app.Addr()})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.cut.Load() {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		control.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	var cfg ReceiverConfig
	if err := settings.Load(ReceiverPrefix, &cfg, []string{"RECEIVER_LISTEN=127.0.0.1:0",
		"RECEIVER_ADMIN_LISTEN=127.0.0.1:0", "RECEIVER_CONTROL_URL=" + front.URL, "RECEIVER_PATH=/in",
		"RECEIVER_CONNECTOR_TOKENS=tiendanube:" + connectorToken + "|next-token-0123456789abcdefghijklmnop" +
			",acme:another-token-0123456789abcdefghijkl",
	}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.receiver, err = NewReceiver(cfg, slog.New(slog.NewJSONHandler(r.log, nil))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.receiver.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if strings.Contains(r.log.String(), connectorToken) {
			t.Error("the log has the token")
		}
	})
	r.eventually("the receiver listens", func() bool { return r.receiver.Addr() != "" })
	return r
}

func (r *receiving) deliver(endpoint, body string) int {
	r.t.Helper()
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost,
		"http://"+r.receiver.Addr()+"/in/tiendanube/"+endpoint, bytes.NewReader([]byte(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Linkedstore-Hmac-Sha256", hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// A provider's webhook reaches control through the receiver, which stays up while control is away and
// acknowledges nothing then.
func TestWebhooksThroughTheReceiver(t *testing.T) {
	t.Parallel()
	r := newReceiving(t)
	shop, status := r.install("123", "app-1", accessToken, "")
	if status != 201 {
		t.Fatal(status)
	}
	body := func(id int) string {
		return fmt.Sprintf("{\"store_id\": 123,\n\"event\":\"product/updated\",\"id\":%d} ", id)
	}
	if status := r.deliver(shop.EndpointID, body(1)); status != http.StatusAccepted {
		t.Fatalf("%d\n%s", status, r.log)
	}
	if status := r.deliver("whe_none", body(1)); status != http.StatusUnauthorized {
		t.Errorf("an unknown endpoint: %d", status)
	}
	r.cut.Store(true)
	if status := r.deliver(shop.EndpointID, body(2)); status != http.StatusServiceUnavailable {
		t.Errorf("while control is away: %d", status)
	}
	if res, err := http.Get("http://" + r.receiver.AdminAddr() + "/readyz"); err != nil {
		t.Error(err)
	} else if res.Body.Close(); res.StatusCode != http.StatusOK {
		t.Errorf("not ready while control is away: %d", res.StatusCode)
	}
	r.cut.Store(false)
	if status := r.deliver(shop.EndpointID, body(3)); status != http.StatusAccepted {
		t.Errorf("after control is back: %d", status)
	}
	const marked = `SELECT string_agg(external_id, ',' ORDER BY external_id) FROM control.entities`
	if got := r.text(marked); got != "1,3" {
		t.Errorf("control has %s, want what was acknowledged: 1,3", got)
	}
}

func TestReceiverConfiguration(t *testing.T) {
	t.Parallel()
	var cfg ReceiverConfig
	err := settings.Load(ReceiverPrefix, &cfg, []string{"RECEIVER_CONTROL_URL=http://u:canary@control",
		"RECEIVER_CONNECTOR_TOKENS=acme:canary-token-0123456789abcdefghijkl", "RECEIVER_PATH=in/",
		"RECEIVER_TIMEOUT=0s", "RECEIVER_BODY_BUDGET=1", "RECEIVER_MAX_CONNECTIONS=0", "RECEIVER_LISTEN=x",
		"RECEIVER_TLS_CERT_FILE=/x"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"CONTROL_URL", "CONNECTOR_TOKENS", "PATH", "TIMEOUT", "BODY_BUDGET",
		"MAX_CONNECTIONS", "LISTEN", "TLS_CERT_FILE"} {
		if !strings.Contains(err.Error(), "RECEIVER_"+name+":") {
			t.Errorf("RECEIVER_%s is not named in %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error has a secret: %v", err)
	}
}

// Connections beyond the bound wait, and are served when another one ends.
func TestReceiverBoundsItsConnections(t *testing.T) {
	t.Parallel()
	cfg := ReceiverConfig{Listen: "127.0.0.1:0", ControlURL: "http://127.0.0.1:1", MaxConnections: 1,
		ConnectorTokens: "tiendanube:" + connectorToken, Timeout: time.Second, BodyBudget: 1 << 23,
		Operations: settings.Operations{AdminListen: "127.0.0.1:0"}}
	a, err := NewReceiver(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.server.start(t.Context(), func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	first, err := net.Dial("tcp", a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		res, err := http.Get("http://" + a.Addr() + "/")
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	select {
	case status := <-answered:
		t.Errorf("answered %d beyond the bound", status)
	case <-time.After(200 * time.Millisecond):
	}
	_ = first.Close()
	if status := <-answered; status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := a.server.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
