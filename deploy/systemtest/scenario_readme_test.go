package systemtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// readmeDeliversAndReadsBack: what the README prints for a new user works as it is printed.
func readmeDeliversAndReadsBack(x *topology, edges []*node) {
	t := x.t
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed")
	}
	text, err := os.ReadFile(filepath.Join(shared.project.Root, "README.md"))
	check(t, err)
	_, section, found := strings.Cut(string(text), "## Deliver a product and read it back")
	_, section, fenced := strings.Cut(section, "```sh\n")
	commands, _, closed := strings.Cut(section, "```")
	if !found || !fenced || !closed {
		t.Fatal("the README's commands are not where they were")
	}
	edge, s, dir := edges[0], x.newShop(), t.TempDir()
	env := fmt.Sprintf("BASE_URL=%s\nINTERNAL_BASE_URL=%s\nCUSTOM_CONNECTION_ID=%s\nCUSTOM_CONNECTOR_TOKEN=%s\nCUSTOM_STOREFRONT_KEY=%s\n",
		edge.url, x.api.BaseURL, s.connection, s.connector.Token, s.key)
	check(t, os.WriteFile(filepath.Join(folder(t, dir, ".run"), "demo.env"), []byte(env), 0o600))
	for _, status := range []string{"accepted", "duplicate"} {
		cmd := exec.Command("sh", "-c", commands)
		cmd.Dir = dir
		var answer, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &answer, &said
		if err := cmd.Run(); err != nil || !strings.Contains(said.String(), `"status":"`+status+`"`) {
			t.Errorf("delivery: %s, want %s (%v)", &said, status, err)
		}
		if !strings.Contains(answer.String(), `"title":{"en":"Gourd mate","es":"Mate de calabaza"}`) {
			t.Errorf("read back: %s", &answer)
		}
	}
}
