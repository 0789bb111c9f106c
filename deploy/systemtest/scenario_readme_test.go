package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
)

// readme runs the commands of a section in a folder with this demo.env, as a new user does.
func readme(t *testing.T, section, env string) (answer, said string) {
	t.Helper()
	_, err := exec.LookPath("curl")
	unavailable(t, err)
	text, err := os.ReadFile(filepath.Join(shared.project.Root, "README.md"))
	check(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	_, rest, fenced := strings.Cut(rest, "```sh\n")
	commands, _, closed := strings.Cut(rest, "```")
	if !found || !fenced || !closed {
		t.Fatal("the README's commands are not where they were")
	}
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder(t, dir, ".run"), "demo.env"), []byte(env), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", commands)
	cmd.Dir, cmd.WaitDelay = dir, 2*time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s%s", section, err, &out, &problems)
	}
	return out.String(), problems.String()
}

// readmeDeliversAndReadsBack: the README's commands for a shop without a platform work as printed.
func readmeDeliversAndReadsBack(x *deployment, edges []*stack.Process) {
	t := x.t
	edge, s := edges[0], x.newStorefront()
	env := fmt.Sprintf("BASE_URL=%s\nINTERNAL_BASE_URL=%s\nCUSTOM_CONNECTION_ID=%s\n"+
		"CUSTOM_CONNECTOR_TOKEN=%s\nCUSTOM_STOREFRONT_KEY=%s\n",
		edge.URL, x.api.BaseURL, s.ConnectionID, s.connector.Token, s.Key)
	for _, status := range []string{"accepted", "duplicate"} {
		answer, said := readme(t, "Deliver a product and read it back", env)
		if !strings.Contains(said, `"status":"`+status+`"`) {
			t.Errorf("delivery: %s, want %s", said, status)
		}
		if !strings.Contains(answer, `"title":{"en":"Gourd mate","es":"Mate de calabaza"}`) {
			t.Errorf("read back: %s", answer)
		}
	}
}

// readmeConnectsAShop: so do its commands for a shop of a platform.
func readmeConnectsAShop(s *shop, edge *stack.Process) {
	s.change("1001", "Publicada")
	s.announce(webhook{Topic: "product/updated", ExternalID: "1001"}, http.StatusAccepted)
	s.awaitItem(s.t, edge, s.item("1001"), "a product", titled("Publicada"))
	var env strings.Builder
	for name, value := range map[string]string{
		"BASE_URL": edge.URL, "INTERNAL_BASE_URL": s.x.api.BaseURL,
		"CONNECTOR_TOKEN": s.x.Settings.ConnectorToken, "STOREFRONT_KEY": s.Key,
		"ITEM_ID": s.item("1001"), "ITEM_EXTERNAL_ID": "1001", "EXTERNAL_STORE_ID": s.id,
		"PROVIDER_URL": s.p.url, "PROVIDER_APP_ID": platformApp,
	} {
		fmt.Fprintf(&env, "%s=%s\n", name, value)
	}
	answer, said := readme(s.t, "Connect a shop", env.String())
	if !strings.Contains(said, `"created":true`) {
		s.t.Errorf("installation: %s", said)
	}
	for _, part := range []string{`"state":"completed"`, `"status":202`, `"title":{"es":"Cambiado a las `} {
		if !strings.Contains(answer, part) {
			s.t.Errorf("%s is not in %s", part, answer)
		}
	}
}

// readmeForgetsAShopper: so do its commands for an erasure.
func readmeForgetsAShopper(x *deployment, s *storefront, relay *stack.Process) {
	s.t.Helper()
	token := client.ConnectorToken(x.Settings.ConnectorToken, client.ConnectorProvider)
	answer, _ := readme(s.t, "Forget a shopper",
		fmt.Sprintf("INTERNAL_BASE_URL=%s\nCONNECTION_ID=%s\nCONNECTOR_TOKEN=%s\nRELAY_ADMIN_URL=http://%s\n",
			x.api.BaseURL, s.ConnectionID, token, relay.Admin))
	for _, part := range []string{"202\n", "\nstorefront_relay_erasures_pending "} {
		if !strings.Contains(answer, part) {
			s.t.Errorf("%q is not in %s", part, answer)
		}
	}
}
