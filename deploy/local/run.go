package main

import (
	"context"
	"os"

	"storefront.internal/deploy/local/localstack"
	"storefront.internal/deploy/local/project"
)

// run runs the local stack.
func run(ctx context.Context) error {
	p, err := project.Find()
	if err != nil {
		return err
	}
	return localstack.Run(ctx, p, os.Stdout)
}
