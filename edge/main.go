// Command edge serves the public surface: it records what shoppers did with recommendations, and serves them. Without
// arguments it serves.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the image holds nothing but this binary

	_ "golang.org/x/crypto/x509roots/fallback" // trusted where the system names no authorities, as in that image

	"storefront.internal/edge/internal/app"
)

func main() {
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
