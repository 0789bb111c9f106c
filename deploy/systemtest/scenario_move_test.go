package systemtest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/stack/client"
)

// A shop moves from one release to another by the commands of the runbook, while its pages send signals:
// those of Decisions of the old release count there, the others in the new one, and none is in both.
func TestAShopMoves(t *testing.T) {
	t.Parallel()
	a, b := newDeployment(t), newDeployment(t)
	edgeA, edgeB := a.edge(), b.edge()
	a.relay()
	b.relay()
	old := a.newStorefront()
	d := old.recommend(edgeA)
	ofA := cartBatch(d, 4)
	old.must(edgeA, ofA)

	env := map[string]string{"A_CONTROL": a.api.BaseURL, "B_CONTROL": b.api.BaseURL,
		"A_BACKEND_TOKEN": a.api.BackendToken, "B_BACKEND_TOKEN": b.api.BackendToken,
		"B_CONNECTOR_TOKEN": b.api.ConnectorToken, "A_CONNECTION": old.ConnectionID,
		"EXTERNAL_STORE_ID": "store-" + randomHex(8)}
	made := runbook(t, "releases.md", "open the shop in B", env)
	moved := &storefront{t: t, Storefront: client.Storefront{
		ConnectionID: member(t, made, "connection_id"), Key: member(t, made, "secret")}}
	moved.connector = connector.Config{BaseURL: b.api.BaseURL, ConnectionID: moved.ConnectionID,
		Token: member(t, made, "token"), Batch: connector.MaxBatch}
	moved.deliverAccepted(baseCatalog()...)

	late := cartBatch(d, 3) // of a page that was open
	old.must(edgeA, late)
	ofB := cartBatch(moved.recommend(edgeB), 5)
	moved.must(edgeB, ofB)
	if r := moved.must(edgeB, cartBatch(d, 1)); r.count("rejected") != 1 {
		t.Errorf("a signal of a Decision of the old release: %+v", r)
	}
	a.awaitDelivered(t, old, append(idsOf(ofA), idsOf(late)...), time.Minute)
	b.awaitDelivered(t, moved, idsOf(ofB), time.Minute)
	if left := runbook(t, "releases.md", "is anything of the shop left in A's queue?",
		env); strings.TrimSpace(left) != "0" {
		t.Errorf("left in A's queue: %q", left)
	}
	runbook(t, "releases.md", "revoke the shop's keys in A", env)
	eventually(t, 30*time.Second, "the old key is refused", func() error {
		return old.checkKey(edgeA, old.Key, http.StatusUnauthorized)
	})
	check(t, moved.checkKey(edgeB, moved.Key, http.StatusBadRequest))
}

// runbook runs the commands of a runbook that begin with a comment, and returns what they print.
func runbook(t *testing.T, file, comment string, env map[string]string) string {
	t.Helper()
	_, err := exec.LookPath("curl")
	unavailable(t, err)
	text, err := os.ReadFile(filepath.Join(shared.project.Root, "deploy/runbooks", file))
	check(t, err)
	_, rest, found := strings.Cut(string(text), "# "+comment+"\n")
	commands, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("%s has no commands %q", file, comment)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
	cmd.WaitDelay = 2 * time.Second
	for name, value := range env {
		cmd.Env = append(cmd.Environ(), name+"="+value)
	}
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", comment, err, &out, &problems)
	}
	return out.String()
}

// member is the text of a member in what a command printed.
func member(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, fmt.Sprintf(`"%s":"`, name))
	value, _, closed := strings.Cut(rest, `"`)
	if !found || !closed {
		t.Fatalf("no %s in %s", name, text)
	}
	return value
}
