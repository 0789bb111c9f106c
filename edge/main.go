// Command edge serves the public surface: it records what shoppers did with recommendations, and serves them. Without
// arguments it serves.
package main

import (
	"context"
	"os"

	"storefront.internal/edge/internal/app"
)

func main() {
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
