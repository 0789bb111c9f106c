// Command democonnector delivers the demo shop to a custom connection, once, as an example of a connector. It
// reads from its environment DEMOCONNECTOR_URL (of control), DEMOCONNECTOR_CONNECTION, DEMOCONNECTOR_TOKEN,
// and DEMOCONNECTOR_BOOK (the file that keeps the revisions between runs).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"storefront.internal/deploy/democonnector/connector"
	"storefront.internal/deploy/democonnector/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "democonnector:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c := connector.Config{
		BaseURL: os.Getenv("DEMOCONNECTOR_URL"), ConnectionID: os.Getenv("DEMOCONNECTOR_CONNECTION"),
		Token: os.Getenv("DEMOCONNECTOR_TOKEN"),
		Log: func(format string,
			args ...any) {
			fmt.Fprintf(os.Stderr, "democonnector: "+format+"\n", args...)
		},
	}
	book := os.Getenv("DEMOCONNECTOR_BOOK")
	if c.BaseURL == "" || c.ConnectionID == "" || c.Token == "" || book == "" {
		return errors.New("DEMOCONNECTOR_URL, DEMOCONNECTOR_CONNECTION, DEMOCONNECTOR_TOKEN and " +
			"DEMOCONNECTOR_BOOK are required")
	}
	report, err := demo.Run(ctx, c, book)
	fmt.Fprintln(os.Stdout, report)
	if err == nil && len(report.Problems) > 0 {
		err = errors.New("some entities were not accepted")
	}
	return err
}
