package e2e

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
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// environment is shared by the tests: the cluster, the runner of its Jobs, and the chart.
type environment struct {
	*cluster
	jobs     *jobRunner
	chart    string
	database string // URL of a new database
	old, now string // control before the newest migration, and the present one
}

var shared *environment

func TestMain(m *testing.M) {
	runtime.LockOSThread() // the programs exit together with the thread that started them
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm-e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	server, tools := os.Getenv("TEST_DATABASE_URL"), os.Getenv("HELM_E2E_TOOLS")
	if server == "" || tools == "" {
		return 1, errors.New("TEST_DATABASE_URL and HELM_E2E_TOOLS are required: use `make helm-e2e`")
	}
	dir, err := os.MkdirTemp("", "storefront-helm-e2e-")
	if err != nil {
		return 1, err
	}
	h := &environment{now: "../../bin/control", chart: "../storefront"}
	if chart := os.Getenv("HELM_E2E_CHART"); chart != "" {
		h.chart = chart
	}
	if h.now, err = filepath.Abs(h.now); err != nil {
		return 1, err
	}
	if h.old, err = buildOld(dir); err != nil {
		return 1, err
	}
	drop, err := h.newDatabase(server)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	began := time.Now()
	if h.cluster, err = newCluster(dir, tools); err != nil {
		return 1, fmt.Errorf("%w (logs in %s)", err, dir)
	}
	defer h.stop()
	if err := h.define(); err != nil {
		return 1, err
	}
	fmt.Printf("the control plane is ready, with the custom resources, after %.1f s\n",
		time.Since(began).Seconds())
	h.jobs = newJobRunner(h.api, map[string]string{"old": h.old, "new": h.now})
	stop := make(chan struct{})
	defer close(stop)
	go h.jobs.serve(stop)
	shared = h
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, "logs of the control plane:", dir)
		return code, nil
	}
	return code, os.RemoveAll(dir)
}

// buildOld builds control without the newest migration.
func buildOld(dir string) (string, error) {
	for _, module := range []string{"shared", "control"} {
		if err := os.CopyFS(filepath.Join(dir, "old", module),
			os.DirFS(filepath.Join("../..", module))); err != nil {
			return "", err
		}
	}
	migrations, err := filepath.Glob(filepath.Join(dir, "old/shared/pg/migrations/*.sql"))
	if err != nil || len(migrations) < 2 {
		return "", fmt.Errorf("%d migrations: %w", len(migrations), err)
	}
	if err := os.Remove(slices.Max(migrations)); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "control-old")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir, cmd.Env = filepath.Join(dir, "old/control"), append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the old control: %w\n%s", err, out)
	}
	return binary, os.RemoveAll(filepath.Join(dir, "old"))
}

func (h *environment) newDatabase(server string) (drop func() error, err error) {
	name := "helm_e2e_" + randomHex(6)
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	u.Path = "/" + name
	h.database = u.String()
	return func() error { return statement(server, "DROP DATABASE "+name+" WITH (FORCE)") }, statement(server,
		"CREATE DATABASE "+name)
}

func statement(server, sql string) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql)
	return errors.Join(err, c.Close(ctx))
}

// schema runs `migrate status` of a control binary.
func (h *environment) schema(binary string) (string, error) {
	cmd := exec.Command(binary, "migrate", "status")
	cmd.Env = []string{"CONTROL_DATABASE_URL=" + h.database}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
