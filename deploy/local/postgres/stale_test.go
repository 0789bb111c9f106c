package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestStalePidFile(t *testing.T) {
	t.Parallel()
	f := func(name, content string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			path := filepath.Join(data, pidFile)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := clearStale(data); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the file is still there: %v", err)
			}
		})
	}
	f("id of another process", fmt.Sprintf("%d\n/data\n", os.Getpid()))
	f("id of no process", "4194303\n/data\n")
	f("cut off", "")
	if err := clearStale(t.TempDir()); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

func TestHomeIsReachable(t *testing.T) {
	t.Parallel()
	private := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	wanted := filepath.Join(private, "postgres")
	dir, err := Home(wanted)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if dir != wanted {
			t.Errorf("got %s, want %s", dir, wanted)
		}
		return
	}
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(dir)) })
	if !reachable(dir[:len(dir)-len("/postgres")]) || dir == wanted {
		t.Errorf("the server's user cannot reach %s", dir)
	}
	if again, err := Home(wanted); again != dir || err != nil {
		t.Errorf("the second time %s, %v", again, err)
	}
}
