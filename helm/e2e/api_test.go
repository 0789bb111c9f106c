package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// api calls the API server as administrator.
type api struct {
	url, token string
	client     *http.Client
}

// object is any object of Kubernetes.
type object map[string]any

type list struct {
	Items []object `json:"items"`
}

// refused is an error response.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return fmt.Sprintf("%d: %s", r.status, r.text) }

func newAPI(url, token string, roots *x509.CertPool) *api {
	return &api{url: url, token: token, client: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
			MinVersion: tls.VersionTLS12}},
	}}
}

// call sends a request and decodes the response into out.
func (a *api) call(method, path string, body []byte, out any, contentType ...string) error {
	r, err := http.NewRequest(method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", append(contentType, "application/json")[0])
	res, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return &refused{res.StatusCode, string(text)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

func (a *api) get(path string, out any) error { return a.call(http.MethodGet, path, nil, out) }

func (a *api) create(path string, o object) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return a.call(http.MethodPost, path, body, nil)
}

// apply makes a server-side apply of YAML.
func (a *api) apply(path string, yaml []byte) error {
	return a.call(http.MethodPatch, path+"?fieldManager=e2e&force=true", yaml, nil,
		"application/apply-patch+yaml")
}

// at returns the value at a path, or nil.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			key, ok := step.(string)
			if !ok {
				return nil
			}
			v = at[key]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func (o object) text(path ...any) string {
	s, _ := o.at(path...).(string)
	return s
}

func (o object) items(path ...any) []object {
	values, _ := o.at(path...).([]any)
	var all []object
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func (o object) name() string      { return o.text("metadata", "name") }
func (o object) namespace() string { return o.text("metadata", "namespace") }

// condition returns the status of a condition.
func condition(o object, kind string) string {
	for _, c := range o.items("status", "conditions") {
		if c.text("type") == kind {
			return c.text("status")
		}
	}
	return ""
}
