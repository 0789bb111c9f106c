package pods

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// namespace is that of the trial.
const namespace = "shop"

// environment is shared by the tests.
type environment struct {
	*cluster
	previous string // the chart of the release before
	shop     shop
	loads    int            // that were made
	receipts int            // that were read from the engine
	created  map[string]int // by the engine, by signal
	outcomes []outcome
}

var shared *environment // A test cannot return a value to the next one.

func TestMain(m *testing.M) {
	if group := os.Getenv(watchGroup); group != "" {
		if err := tick(group); err != nil {
			panic(err)
		}
		return
	}
	runtime.LockOSThread() // the programs exit together with the thread that started them
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "k8s-e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (int, error) {
	dir := os.Getenv("K8S_E2E_DIR")
	if dir == "" {
		return 1, errors.New("K8S_E2E_DIR is required: use `make k8s-e2e`")
	}
	began := time.Now()
	c, err := newCluster(dir, os.Getenv("K8S_E2E_TOOLS"), os.Getenv("K8S_E2E_IMAGES"), os.Getenv("CNI"))
	if err != nil {
		return 1, errors.Join(err, c.alive())
	}
	fmt.Printf("node 0 and DNS are ready after %.1f s\n", time.Since(began).Seconds())
	shared = &environment{cluster: c, previous: os.Getenv("K8S_E2E_PREVIOUS"),
		created: map[string]int{}}
	code := m.Run()
	fmt.Print(table(shared.outcomes))
	return code, nil
}
