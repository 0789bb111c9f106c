//go:debug x509usefallbackroots=1

// Command control serves the internal surface and owns schema control: connections, storefront keys, and what
// people see of the queue to the engine. It also brings the database to its schema. Without arguments it
// serves.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the image holds nothing but this binary

	"storefront.internal/control/internal/app"
	"storefront.internal/shared/trust"
)

func main() {
	trust.UsePublicRoots()
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
