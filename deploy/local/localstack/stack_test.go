package localstack

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	t.Parallel()
	f := func(base string, edge int, fails bool) {
		t.Helper()
		p, err := portsFrom(base)
		if (err != nil) != fails || int(p) != edge {
			t.Errorf("PORT_BASE=%q: edge %d, error %v", base, p, err)
		}
	}
	f("", defaultPortBase, false)
	f("20000", 20000, false)
	f("80", 0, true)
	f("65530", 0, true)
	f("many", 0, true)
}

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := ports(l.Addr().(*net.TCPAddr).Port).free(); err == nil ||
		!strings.Contains(err.Error(), "PORT_BASE") {
		t.Errorf("error %v", err)
	}
}

func TestStateIsRemembered(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	first, err := loadState(path)
	if err != nil {
		t.Fatal(err)
	}
	first.Key = "spk_x"
	if err := first.save(path); err != nil {
		t.Fatal(err)
	}
	second, err := loadState(path)
	if err != nil || second != first {
		t.Errorf("got %+v, %v, want %+v", second, err, first)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A state that an earlier version wrote lacks some secrets, and gets them once.
func TestOlderStateIsCompleted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"pepper":"kept"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := loadState(path)
	if err != nil || first.Pepper != "kept" || !strings.HasPrefix(first.AccessToken, "demo-") ||
		first.AppSecret == "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if second, err := loadState(path); err != nil || second != first {
		t.Errorf("again %+v, %v, want %+v", second, err, first)
	}
	if err := os.WriteFile(path, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadState(path); err == nil {
		t.Error("half a file was taken")
	}
}

func TestOneStackAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(path); err == nil {
		t.Error("locked twice")
	}
	unlock()
	again, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestDemoFileLeavesOutWhatIsNotThere(t *testing.T) {
	t.Parallel()
	d := demo{{"BASE_URL", "http://a"}, {"PROVIDER_URL", ""}, {"ITEM_ID", "itm_1"}}
	if got, want := string(d.file()), "BASE_URL=http://a\nITEM_ID=itm_1\n"; got != want {
		t.Errorf("file %q, want %q", got, want)
	}
}

func TestBannerNamesStandInsAndFillsCommands(t *testing.T) {
	t.Parallel()
	d := demo{
		{"BASE_URL", "http://edge"}, {"CONNECTION_ID", "con_1"}, {"STOREFRONT_KEY", "spk_1"},
		{"ITEM_ID", "itm_1"}, {"ENGINE_URL", "http://engine"},
		{"ITEM_EXTERNAL_ID", "1001"}, {"PROVIDER_URL", "http://fake"},
	}
	var loud, quiet bytes.Buffer
	printBanner(&loud, d, "dec_1", true, "demo.env")
	printBanner(&quiet, d, "dec_1", false, "demo.env")
	if !strings.Contains(loud.String(), "FORGETS") || strings.Contains(quiet.String(), "FORGETS") {
		t.Error("only stand-ins forget")
	}
	for _, name := range []string{"{BASE_URL}", "{CONNECTION_ID}", "{STOREFRONT_KEY}", "{ITEM_ID}",
		"{ENGINE_URL}", "{DECISION_ID}", "{PROVIDER_URL}", "{ITEM_EXTERNAL_ID}"} {
		if strings.Contains(quiet.String(), name) {
			t.Errorf("%s was not filled in", name)
		}
	}
}

func TestLogShowsWarningsOnly(t *testing.T) {
	t.Parallel()
	var console bytes.Buffer
	l, err := openLog(t.TempDir(), "edge", &console)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"level":"INFO","msg":"started"}` + "\n" + `{"level":"WA`, `RN","msg":"slow","error":"late"}` +
			"\nplain text\n",
		`{"level":"WARN","msg":"request","operation":"recommend","status":503,"code":"overloaded"}` + "\n",
	} {
		if _, err := l.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := console.String(),
		"edge: WARN slow late\nedge: WARN request recommend 503 overloaded\n"; got != want {
		t.Errorf("console %q, want %q", got, want)
	}
}
