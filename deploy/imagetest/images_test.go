//go:build images

package imagetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
)

// enter runs a program with a folder as its read-only root and without privileges. Each step replaces the
// process, so that its id remains.
const enter = `#!/bin/sh
exec unshare --mount sh -c '
	mount --bind "$0" "$0" && mount -o remount,bind,ro,nosuid,nodev "$0" &&
	exec setpriv --no-new-privs chroot --userspec=65532:65532 --groups= "$0" "$@"' '%s' '/ko-app/%s' "$@"
`

var names = []string{"edge", "control", "engine-relay"}

// TestImagesStart checks that each service becomes ready from its image, and that the image migrates the
// database.
func TestImagesStart(t *testing.T) {
	s := deployment(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	keyset, err := s.Once(ctx, nil, "keyset", "new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Once(ctx, s.Migrate(), "migrate", "up"); err != nil {
		t.Fatal(err)
	}
	if err := stack.EnsureLogins(ctx, s.Database, ""); err != nil {
		t.Fatal(err)
	}
	inline := []string{"CONTROL_KEYSET_FILE=", "CONTROL_KEYSET=" + string(keyset)}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			listen, admin := address(t), address(t)
			env := map[string][]string{
				"edge": s.Edge(listen, admin), "control": append(s.Control(listen, admin),
					inline...), "engine-relay": s.Relay(admin),
			}[name]
			var log bytes.Buffer
			p, err := s.Start(name, env, &log)
			if err != nil {
				t.Fatal(err)
			}
			err = stack.Ready(ctx, p, admin, 2*time.Minute)
			if err == nil {
				confined(t, p)
				version(t, admin)
			}
			if err := errors.Join(err, p.Stop(syscall.SIGTERM, time.Minute)); err != nil {
				t.Fatalf("%v\n%s", err, &log)
			}
		})
	}
}

// TestImagesContainData checks that the binaries contain certificates and time zones.
func TestImagesContainData(t *testing.T) {
	for _, name := range names {
		path := filepath.Join(root(t, name), "ko-app", name)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		authorities := false
		for _, d := range info.Deps {
			authorities = authorities || d.Path == "golang.org/x/crypto/x509roots/fallback"
		}
		if !authorities {
			t.Errorf("%s carries no certificates of authorities", name)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(binary, []byte("America/Argentina/Buenos_Aires")) {
			t.Errorf("%s carries no time zones", name)
		}
	}
}

// deployment creates a database and returns settings that run the programs from the unpacked images.
func deployment(t *testing.T) stack.Settings {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root may give a process a root of its own: run `make images` as root")
	}
	server, redis, kafka := os.Getenv("TEST_DATABASE_URL"), os.Getenv("TEST_REDIS_ADDR"),
		os.Getenv("TEST_KAFKA_BROKERS")
	if server == "" || redis == "" || kafka == "" {
		t.Fatal("TEST_DATABASE_URL, TEST_REDIS_ADDR and TEST_KAFKA_BROKERS are required: use `make images`")
	}
	bin, err := os.MkdirTemp("", "storefront-images-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(bin, name), fmt.Appendf(nil, enter, root(t, name), name),
			0o755); err != nil {
			t.Fatal(err)
		}
	}
	database := "images_" + hex.EncodeToString(random(6))
	statement(t, server, "CREATE DATABASE "+database)
	t.Cleanup(func() { statement(t, server, "DROP DATABASE "+database+" WITH (FORCE)") })
	url, err := stack.WithDatabase(server, database)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Settings{
		Bin: bin, Database: url, RedisAddr: redis, KafkaBrokers: kafka, ErrorsBase: "https://errors.example/",
		DecisionKeys: "k1:" + base64.StdEncoding.EncodeToString(random(32)), KeysetFile: "none",
		ConnectorToken: hex.EncodeToString(random(24)), BackendToken: hex.EncodeToString(random(24)),
		EngineToken: hex.EncodeToString(random(24)), Pepper: hex.EncodeToString(random(24)),
	}
}

// confined checks that the process has no privileges and a read-only root.
func confined(t *testing.T, p *process.Process) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "NoNewPrivs:\t1",
		"CapEff:\t0000000000000000",
	} {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("no %q in\n%s", line, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(mounts)), "\n")
	if f := strings.Fields(lines[len(lines)-1]); len(f) < 6 || f[4] != "/" ||
		!strings.HasPrefix(f[5], "ro,") {
		t.Errorf("the root is not read-only:\n%s", mounts)
	}
}

// version checks the version that the service reports.
func version(t *testing.T, admin string) {
	t.Helper()
	r, err := http.Get("http://" + admin + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct{ Version string }
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Version != os.Getenv("VERSION") ||
		answer.Version == "" {
		t.Errorf("version %q (%v), built as %q", answer.Version, err, os.Getenv("VERSION"))
	}
}

func root(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("IMAGES_ROOT"), name)
	if _, err := os.Stat(path); err != nil || os.Getenv("IMAGES_ROOT") == "" {
		t.Fatalf("IMAGES_ROOT holds no %s (%v): use `make images`", name, err)
	}
	return path
}

func address(t *testing.T) string {
	t.Helper()
	port, err := project.ClaimPort()
	if err != nil {
		t.Fatal(err)
	}
	return project.Loopback(port)
}

func statement(t *testing.T, url, sql string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(ctx, sql)
	if err := errors.Join(err, c.Close(ctx)); err != nil {
		t.Fatal(err)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
