//go:build helm

package helmtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"sigs.k8s.io/yaml"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

const (
	connectorToken = "connector-connector-connector-connector-"
	backendToken   = "backend-backend-backend-backend-backend-"
	decisionKeys   = "k1:QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUI="
	pepper         = "pepper-pepper-pepper-pepper-pepper-pepper"
	errorsBase     = "https://errors.example/"
)

// stores are those of `local exec`, with a database and roles of the test.
type stores struct {
	server   *url.URL // of the superuser
	database string
	owner    string
	redis    string
	kafka    string
	keyset   string
}

// newStores creates what the README requires before the installation: a database, its owner, and a login role
// for each service.
func newStores(t *testing.T) *stores {
	t.Helper()
	server, err := url.Parse(os.Getenv("TEST_DATABASE_URL"))
	redis, kafka := os.Getenv("TEST_REDIS_ADDR"), os.Getenv("TEST_KAFKA_BROKERS")
	if err != nil || server.Host == "" || redis == "" || kafka == "" {
		t.Fatal("TEST_DATABASE_URL, TEST_REDIS_ADDR and TEST_KAFKA_BROKERS are required: use make helm-test")
	}
	b := make([]byte, 4)
	_, _ = rand.Read(b)
	s := &stores{server: server, database: "helmtest_" + hex.EncodeToString(b), redis: redis, kafka: kafka}
	s.owner = s.database + "_owner"
	s.exec(t, `DO $$ DECLARE name text; BEGIN
		FOREACH name IN ARRAY ARRAY['storefront_edge', 'storefront_relay', 'storefront_control'] LOOP
			BEGIN
				EXECUTE format('CREATE ROLE %I NOLOGIN', name);
			EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- other tests create them too
			END;
		END LOOP;
	END $$`)
	s.exec(t, fmt.Sprintf("CREATE ROLE %s LOGIN NOSUPERUSER NOCREATEROLE PASSWORD 'p/w:1@'", s.owner))
	s.exec(t, fmt.Sprintf("CREATE DATABASE %s OWNER %s", s.database, s.owner))
	for _, name := range []string{"edge", "relay", "control"} {
		s.exec(t, fmt.Sprintf("CREATE ROLE %s_%s LOGIN PASSWORD 'p/w:1@' IN ROLE storefront_%s", s.database,
			name, name))
	}
	t.Cleanup(func() {
		s.exec(t, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", s.database))
		s.exec(t, fmt.Sprintf("DROP ROLE %[1]s_edge, %[1]s_relay, %[1]s_control, %[1]s_owner", s.database))
	})
	cmd := exec.CommandContext(t.Context(), binary(t, "control"), "keyset", "new")
	cmd.Env = []string{}
	keyset, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	s.keyset = strings.TrimSpace(string(keyset))
	return s
}

func (s *stores) exec(t *testing.T, sql string) {
	t.Helper()
	s.execIn(t, s.server.String(), sql)
}

func (s *stores) execIn(t *testing.T, database, sql string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), database)
	if err == nil {
		_, err = c.Exec(context.Background(), sql)
		err = errors.Join(err, c.Close(context.Background()))
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// as returns the URL of the test's database for a role.
func (s *stores) as(role string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", role, url.QueryEscape("p/w:1@"),
		s.server.Host, s.database)
}

// superuser returns the URL of the test's database for the superuser.
func (s *stores) superuser(t *testing.T) string {
	t.Helper()
	u, err := stack.WithDatabase(s.server.String(), s.database)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (s *stores) isolated() map[string]any {
	return map[string]any{
		"errorsBase": errorsBase,
		"redis":      map[string]any{"addrs": []string{s.redis}, "prefix": s.database + ":"},
		"kafka": map[string]any{"brokers": strings.Split(s.kafka, ","), "consumerGroup": s.database,
			"replicationFactor": 1},
	}
}

// externalValues are values that refer to existing Secrets.
func (s *stores) externalValues(t *testing.T) string {
	values := s.isolated()
	roles := map[string]any{"host": s.server.Hostname(), "port": number(t, s.server.Port()),
		"database": s.database, "sslMode": "disable",
		"existingSecret": "storefront-postgresql", "migrations": map[string]any{"username": s.owner}}
	for _, name := range []string{"edge", "control", "relay"} {
		roles[name] = map[string]any{"username": s.database + "_" + name}
	}
	values["postgresql"] = roles
	values["secrets"] = map[string]any{"existingSecret": "storefront"}
	values["receiver"] = map[string]any{"enabled": true}
	values["control"] = map[string]any{"webhookUrl": "https://hooks.example.com/in"}
	// it does not listen: deliveries stay pending
	values["engine"] = map[string]any{"url": "http://127.0.0.1:9", "existingSecret": "storefront-engine"}
	return s.file(t, values)
}

// trialValues include all secrets and use one user.
func (s *stores) trialValues(t *testing.T) string {
	values := s.isolated()
	values["auth"] = map[string]any{"create": true, "databaseUrl": s.as(s.owner),
		"decisionKeys": decisionKeys, "keyset": s.keyset,
		"connectorTokens": client.ConnectorProvider + ":" +
			connectorToken, "backendTokens": backendToken, "connectorPepper": pepper}
	return s.file(t, values)
}

func (s *stores) file(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(values)
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err = errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func number(t *testing.T, s string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatalf("port %q: %v", s, err)
	}
	return n
}

// release renders values and adds the Secrets that they refer to.
func (s *stores) release(t *testing.T, values string) release {
	t.Helper()
	return release{objects: objects(t, render(t, "-f", values)), secrets: map[string]map[string]string{
		"storefront-postgresql": {"edge-password": "p/w:1@", "control-password": "p/w:1@",
			"relay-password": "p/w:1@", "migrations-password": "p/w:1@"},
		"storefront": {"decision-keys": decisionKeys, "keyset": s.keyset,
			"connector-tokens": client.ConnectorProvider + ":" + connectorToken,
			"backend-tokens":   backendToken, "engine-tokens": strings.Repeat("engine-",
				6), "connector-pepper": pepper},
		"storefront-engine": {"engine-token": "engine-secret"},
	}}
}
