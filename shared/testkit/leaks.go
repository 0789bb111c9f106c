package testkit

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakTimeout is how long goroutines may take to end on a busy machine.
const leakTimeout = 30 * time.Second

// OwnTransport gives http.DefaultClient connections of its own. The Close of an httptest.Server closes those
// of http.DefaultTransport, also under requests of tests that run in parallel.
func OwnTransport() {
	http.DefaultClient.Transport = http.DefaultTransport.(*http.Transport).Clone()
}

// Main runs the tests of a package and fails when goroutines are left at the end. A TestMain calls it and
// nothing else.
func Main(m *testing.M, ignore ...goleak.Option) {
	OwnTransport()
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		err := goleak.Find(ignore...)
		for until := time.Now().Add(leakTimeout); err != nil && time.Now().Before(until); {
			err = goleak.Find(ignore...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
