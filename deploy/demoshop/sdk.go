package main

import (
	"fmt"
	"path/filepath"

	"storefront.internal/deploy/demoshop/shop"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/web"
)

// sdkScripts are the files of the browser SDK that the edge at a base URL serves from this checkout.
func sdkScripts(base string) ([]shop.Script, error) {
	p, err := project.Find()
	if err != nil {
		return nil, err
	}
	version, err := web.Version(filepath.Join(p.Root, "edge", "sdk"))
	if err != nil {
		return nil, err
	}
	files, err := web.Read(web.ServedDir(p.Root, version))
	if err != nil {
		return nil, err
	}
	var scripts []shop.Script
	for _, name := range []string{"storefront.iife.js", "element.iife.js"} {
		if files[name] == nil {
			return nil, fmt.Errorf("version %s of the browser SDK has no %s", version, name)
		}
		scripts = append(scripts, shop.Script{URL: base + web.ScriptPath(version, name),
			Integrity: web.Integrity(files[name])})
	}
	return scripts, nil
}
