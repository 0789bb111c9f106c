package web

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const sdk = "../../edge/sdk"

func TestSizesAreWithinTheBudgets(t *testing.T) {
	t.Parallel()
	files, err := Build(sdk)
	if err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	if err := files.Report(&report); err != nil {
		t.Error(err)
	}
	for name := range Budgets {
		if !strings.Contains(report.String(), name) {
			t.Errorf("%s is not in the report", name)
		}
	}
	if err := (Files{"storefront.iife.js": randomText(20_000)}).Report(&report); err == nil {
		t.Error("a script above its budget does not fail the build")
	}
}

// randomText cannot be compressed much.
func randomText(n int) []byte {
	text := make([]byte, n)
	state := uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = byte(state >> 24)
	}
	return text
}

// The unit tests of the SDK run in Node on what was built here.
func TestSDK(t *testing.T) {
	t.Parallel()
	files, err := Build(sdk)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := nodeTest(t, files, ""); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// nodeTest runs the SDK's tests whose name matches pattern.
func nodeTest(t *testing.T, files Files, pattern string) (string, error) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("REQUIRE_REAL") == "1" {
			t.Fatal("node is missing")
		}
		t.Skip("node is missing")
	}
	dist := t.TempDir()
	for name, code := range files {
		if err := os.WriteFile(filepath.Join(dist, name), code, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--test"}
	if pattern != "" {
		args = append(args, "--test-name-pattern", pattern)
	}
	cmd := exec.CommandContext(t.Context(), node, append(args, "test/")...)
	cmd.Dir = sdk
	cmd.Env = append(os.Environ(), "SDK_DIST=file://"+dist+"/")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// planted is a bug in the SDK with the test that must find it.
type planted struct{ name, old, new, test string }

// The bugs are those that SDKs of others had.
func plantedBugs() []planted {
	return []planted{
		{"id minted per attempt", `batch.map((e) => e.json_) + ']}'`,
			`batch.map((e) => e.json_.replace(e.id_, random('sig_'))) + ']}'`,
			"a resend has the same ids and bytes"},
		{"removed on send", `      flying.add(name_);`, `      flying.add(name_), remove(name_);`,
			"a signal stays until an answer names it"},
		{"wrong position trusted", `results[i]!.signal_id !== e.id_ || `, ``,
			"a 202 whose results are in another order removes nothing"},
		{"body unread", `return [answer, await answer.text()];`,
			`return [answer, answer.status < 300 ? await answer.text() : ''];`,
			"forty 503s in a row leave room for keepalive"},
		{"Retry-After ignored", `else if (/429|503/.test(status as never) && ms > 0)`,
			`else if (/429|503/.test(status as never) && ms > 1e9)`,
			"no tab sends before Retry-After"},
		{"one list for all tabs", `const name = tab + '.' + signal_id;`,
			`const name = 't.' + (attempts['n'] = (attempts['n'] ?? 0) + 1);`,
			"two tabs lose nothing of each other"},
		{"unload by a JSON beacon",
			`const leave = () => pause() || send(entries().filter((e) => !e.name_.indexOf(tab)), true);`,
			`const leave = () => { const waiting = entries(); if (waiting[0]) navigator.sendBeacon(` +
				`path + 'storefront-signals', new Blob([JSON.stringify(waiting)], ` +
				`{ type: 'application/json' })); };`,
			"the unload request is the same simple form"},
		{"purchase expires as all else", `(e.type_ === 'purchase' ? 30 : 7)`, `7`,
			"a purchase lives 30 days"},
	}
}

func TestEachPlantedBugIsFound(t *testing.T) {
	t.Parallel()
	for _, bug := range plantedBugs() {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			out, err := nodeTest(t, mutant(t, bug), bug.test)
			if err == nil {
				t.Errorf("%q does not find it\n%s", bug.test, out)
			}
			if !strings.Contains(out, "not ok") && !strings.Contains(out, "✖") {
				t.Errorf("no test ran\n%s", out)
			}
		})
	}
}

// mutant builds the SDK with the bug.
func mutant(t *testing.T, bug planted) Files {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(sdk, "src"))); err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(dir, "src", "client.ts")
	source, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), bug.old); n != 1 {
		t.Fatalf("the place of the bug is there %d times", n)
	}
	changed := strings.Replace(string(source), bug.old, bug.new, 1)
	if err := os.WriteFile(client, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
