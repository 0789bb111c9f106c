package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
)

// hook delivers a webhook and returns the answer without its request id.
func (b *bundle) hook(path, signature, body string) (status int, text string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost,
		"http://"+b.app.Addr()+"/internal/v1/webhooks/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+connectorToken)
	r.Header.Set("Content-Type", "application/octet-stream")
	if signature != "" {
		r.Header.Set("X-Provider-Signature", signature)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	answer.Header.Del("X-Request-Id")
	answer.Header.Del("Date")
	text = fmt.Sprint(answer.Header, string(raw))
	return answer.StatusCode, regexp.MustCompile(`"request_id":"[^"]*"`).ReplaceAllString(text, "")
}

func TestWebhooksAndLoadsOfAnInstalledShop(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(c *Config) { // no server listens there
		c.Production, c.ProviderURLs, c.ProviderNetworks = false,
			[]string{"tiendanube=http://127.0.0.1:1/{store}"}, []string{"127.0.0.1/32"}
	})
	shop, status := b.install("123", "app-1", accessToken, "")
	if status != 201 {
		t.Fatal(status)
	}
	const body = `{"store_id":123,"event":"product/updated","id":1948209}`
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write([]byte(body))
	signature := hex.EncodeToString(mac.Sum(nil))
	if status, text := b.hook("tiendanube/"+shop.EndpointID, signature, body); status != 202 {
		t.Fatalf("%d %s", status, text)
	}
	var first string
	for i, c := range [][3]string{
		{"tiendanube/" + shop.EndpointID, "", body},
		{"tiendanube/" + shop.EndpointID, signature, body + " "},
		{"tiendanube/" + shop.EndpointID, signature[:60], body},
		{"tiendanube/whe_none", signature, body},
		{"tiendanube/no-endpoint", signature, body},
		{"shopify/" + shop.EndpointID, signature, body},
		{"unmounted/" + shop.EndpointID, signature, body},
	} {
		status, text := b.hook(c[0], c[1], c[2])
		if i == 0 {
			first = text
		}
		if status != 401 || text != first {
			t.Errorf("%v: %d %s, the first one %s", c, status, text, first)
		}
	}
	if got := b.text(`SELECT string_agg(entity || ' ' || external_id || ' ' || dirty_seq, ',') FROM control.entities`); got != "product 1948209 1" {
		t.Errorf("marked: %s", got)
	}
	b.loads(shop)
}

// bootstraps opens a bootstrap run, opens it again while it is unfinished, and views it.
func (b *bundle) loads(shop installed) {
	b.t.Helper()
	path := "/connections/" + shop.ConnectionID + "/bootstrap"
	body := fmt.Sprintf(`{"connection_id":%q,"resources":["product"]}`, shop.ConnectionID)
	var opened struct {
		Run string `json:"bootstrap_run_id"`
	}
	a := b.call("POST", path, connectorToken, body)
	if a.status != 202 {
		b.t.Fatalf("%d %s", a.status, a.body)
	}
	a.decode(b.t, &opened)
	if a := b.call("POST", path, connectorToken, body); a.status != 409 ||
		!bytes.Contains([]byte(a.body), []byte(opened.Run)) {
		b.t.Errorf("%d %s", a.status, a.body)
	}
	var run struct{ State, Reason string }
	b.eventually("the run says that the provider does not answer", func() bool {
		a := b.call("GET", path+"/"+opened.Run, connectorToken, "")
		a.decode(b.t, &run)
		return a.status == 200 && run.State == "running" && run.Reason != ""
	})
}
