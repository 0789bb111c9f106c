package main

import (
	"path/filepath"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/web"
)

// buildSDK builds the browser SDK from this checkout.
func buildSDK() (web.Files, error) {
	p, err := project.Find()
	if err != nil {
		return nil, err
	}
	return web.Build(filepath.Join(p.Root, "edge", "sdk"))
}
