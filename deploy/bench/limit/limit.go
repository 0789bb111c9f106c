// Package limit holds small programs that do only the bare work of a service; the services are compared with
// them. Each is a process of its own, as a service is. They have no audit, no rate limits, no keys and no
// validation, so the comparison favours them.
package limit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/valyala/fasthttp"
)

// The variables that choose the program, its listener, and what it uses.
const (
	Program = "BENCH_LIMIT"
	Listen  = "BENCH_LIMIT_LISTEN"
	Body    = "BENCH_LIMIT_BODY" // path of the answer's body
	Redis   = "BENCH_LIMIT_REDIS"
	Brokers = "BENCH_LIMIT_BROKERS"
	Topic   = "BENCH_LIMIT_TOPIC"
)

// The programs.
const (
	Static       = "static"
	StraightLine = "straight-line"
)

// Main runs the program that the environment names until the process ends. It returns false when none is
// named.
func Main() (bool, error) {
	handler, err := program(os.Getenv(Program))
	if handler == nil {
		return err != nil, err
	}
	l, err := net.Listen("tcp", os.Getenv(Listen))
	if err != nil {
		return true, err
	}
	return true, (&fasthttp.Server{Handler: handler, NoDefaultServerHeader: true}).Serve(l)
}

func program(name string) (fasthttp.RequestHandler, error) {
	switch name {
	case "":
		return nil, nil
	case Static:
		return static(os.Getenv(Body))
	case StraightLine:
		return straightLine(os.Getenv(Redis), strings.Split(os.Getenv(Brokers), ","), os.Getenv(Topic))
	default:
		return nil, fmt.Errorf("%s: no program %q", Program, name)
	}
}

// static answers every request with the bytes of a file: the cost of HTTP alone.
func static(path string) (fasthttp.RequestHandler, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Join(errors.New(Body), err)
	}
	return func(ctx *fasthttp.RequestCtx) {
		if ctx.IsPost() {
			ctx.SetStatusCode(fasthttp.StatusAccepted)
		}
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}, nil
}
