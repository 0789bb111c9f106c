package main

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestPush checks that the registry gets the index with all platforms and the version as tag.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	o := order{registry: strings.TrimPrefix(server.URL, "http://") + "/shop", version: "1.2.3",
		platforms: []string{"linux/amd64", "linux/arm64"}}
	_, base, err := o.base(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.push(context.Background(), base, "edge"); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(o.registry + "/edge:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := got.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if strings.Join(platforms, ",") != "linux/amd64,linux/arm64" {
		t.Errorf("the registry has %v", platforms)
	}
}
