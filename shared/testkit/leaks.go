package testkit

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end on a busy machine.
const patience = 30 * time.Second

// Main runs a package's tests and fails when goroutines are left over in the end. A TestMain calls it and nothing else.
func Main(m *testing.M, ignore ...goleak.Option) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		err := goleak.Find(ignore...)
		for until := time.Now().Add(patience); err != nil && time.Now().Before(until); {
			err = goleak.Find(ignore...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
