package bench

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
)

// staticBody tells this program to be the bare handler in a process of its own, and what it answers.
const staticBody = "BENCH_STATIC_BODY"

func TestMain(m *testing.M) {
	if path := os.Getenv(staticBody); path != "" {
		serveStatic(path, os.Getenv("BENCH_STATIC_LISTEN"))
		return
	}
	code := m.Run()
	rows.print()
	os.Exit(code)
}

// serveStatic answers every request with the file's bytes, without looking at it: what HTTP alone costs here.
func serveStatic(path, listen string) {
	body, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		panic(err)
	}
	panic(fasthttp.Serve(l, func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}))
}

// table collects what the benchmarks found.
type table struct {
	mu   sync.Mutex
	text strings.Builder
}

var rows table

func (t *table) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(&t.text, format+"\n", args...)
}

func (t *table) print() {
	if t.text.Len() > 0 {
		fmt.Fprintf(os.Stdout, "\n%s\n", t.text.String())
	}
}
