package main

import (
	"context"
	"os"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/stack"
)

// run is the local stack: see package stack.
func run(ctx context.Context) error {
	p, err := project.Find()
	if err != nil {
		return err
	}
	return stack.Run(ctx, p, os.Stdout)
}
