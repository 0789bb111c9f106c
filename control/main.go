// Command control serves the internal surface and owns schema control: connections, storefront keys, and what people
// see of the queue to the engine. It also brings the database to its schema. Without arguments it serves.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // the image holds nothing but this binary

	_ "golang.org/x/crypto/x509roots/fallback" // trusted where the system names no authorities, as in that image

	"storefront.internal/control/internal/app"
)

func main() {
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
