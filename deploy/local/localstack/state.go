package localstack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"storefront.internal/deploy/stack/client"
)

// state is what a stack remembers between runs: the secrets that its data depends on, and tokens that the
// services show only once.
type state struct {
	RolePassword   string `json:"role_password"`
	DecisionKeys   string `json:"decision_keys"`
	ConnectorToken string `json:"connector_token"`
	BackendToken   string `json:"backend_token"`
	EngineToken    string `json:"engine_token"`
	EngineSecret   string `json:"engine_secret"`
	Pepper         string `json:"pepper"`
	AppSecret      string `json:"app_secret"`   // of our app at the fake provider
	AccessToken    string `json:"access_token"` // to the shop there

	Shop            client.Installed  `json:"shop"` // of the fake provider
	ShopKey         string            `json:"shop_key"`
	ExternalStoreID string            `json:"external_store_id"`
	Connection      client.Connection `json:"connection"`
	Key             string            `json:"key"`
}

func newState() state {
	return state{
		RolePassword:    secret(),
		DecisionKeys:    "k1:" + base64.StdEncoding.EncodeToString(random(32)),
		ConnectorToken:  secret(),
		BackendToken:    secret(),
		EngineToken:     secret(),
		EngineSecret:    secret(),
		Pepper:          secret(),
		AppSecret:       secret(),
		AccessToken:     "demo-" + secret(),
		ExternalStoreID: "demo-store",
	}
}

// loadState reads what an earlier run wrote, or makes a new state. A member that an earlier version did not
// write gets a new value.
func loadState(path string) (state, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		s := newState()
		return s, s.save(path)
	}
	if err != nil {
		return state{}, err
	}
	s := newState()
	if err := json.Unmarshal(text, &s); err != nil {
		return state{}, err
	}
	return s, s.save(path)
}

func (s state) save(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeAtomically(path, append(text, '\n'), 0o600)
}

// writeAtomically replaces a file so that a reader never sees half of it.
func writeAtomically(path string, text []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

func secret() string { return base64.RawURLEncoding.EncodeToString(random(32)) }
