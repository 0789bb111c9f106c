// Package limit holds the small programs that the services are measured against: what the machine gives when nothing but the
// bare work is done. They are programs of their own, as the services are, and each does its work in the plain way; what they leave
// out is said where they stand. It refuses to be fair to itself: no audit, no limits, no keys, no validation.
package limit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/valyala/fasthttp"
)

// The variables that make this program one of the limits, and say where it listens and what it answers or uses.
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

// Main is the program that the environment names; it ends with its process. It says false when none is named.
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

// static answers every request with the file's bytes, without looking at it: what HTTP alone costs here.
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
