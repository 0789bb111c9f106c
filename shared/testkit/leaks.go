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

// Main runs the tests of a package and fails when goroutines are left at the end. A TestMain calls it and
// nothing else.
func Main(m *testing.M, ignore ...goleak.Option) {
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
