package main

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/ko/pkg/build"
)

// localRegistry starts a registry in this process and returns its address.
func localRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// index returns an index of two platforms whose images are labelled.
func index(t *testing.T, label string) build.Result {
	t.Helper()
	o := order{platforms: []string{"linux/amd64", "linux/arm64"}}
	_, base, err := o.base(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	result, ok := mutate.Annotations(base, map[string]string{"label": label}).(build.Result)
	if !ok {
		t.Fatal("an annotated index is no result")
	}
	return result
}

// TestPush checks that the registry gets the index with all platforms, its tag only after all images, and
// that a tag is never moved.
func TestPush(t *testing.T) {
	ctx := context.Background()
	r := &release{registry: localRegistry(t) + "/shop", version: "1.2.3"}
	if err := r.push(ctx, index(t, "first"), "edge"); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(r.registry + "/edge:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(tag); err == nil {
		t.Error("the image has its tag before the other images are pushed")
	}
	for range 2 { // a repeated release changes nothing
		if err := r.tag(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(ctx, strings.NewReader(tag.String()), []string{"linux/amd64", "linux/arm64"},
		io.Discard); err != nil {
		t.Error(err)
	}
	if err := check(ctx, strings.NewReader(tag.String()), []string{"linux/riscv64"}, io.Discard); err == nil {
		t.Error("a platform that is missing is not noticed")
	}
	other := &release{registry: r.registry, version: "1.2.3"}
	if err := other.push(ctx, index(t, "second"), "edge"); err != nil {
		t.Fatal(err)
	}
	if err := other.tag(ctx); err == nil || !strings.Contains(err.Error(), "releases do not change") {
		t.Errorf("another image takes the tag: %v", err)
	}
}

// releaseScript returns a function that runs steps of .ci/release against a local registry. The images are
// empty, and a script stands for cosign.
func releaseScript(t *testing.T, address, out string) func(owner string, steps ...string) (string, error) {
	t.Helper()
	helm, err := filepath.Abs("../../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(helm); err != nil {
		t.Skip("SKIPPED: bin/helm is missing (`make bin/helm`); the release is NOT tested")
	}
	images, cosign := filepath.Join(out, "images"), filepath.Join(out, "cosign")
	if text, err := exec.Command("go", "build", "-o", images, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	err = os.WriteFile(cosign, []byte("#!/bin/sh\necho cosign \"$@\"\n"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	return func(owner string, steps ...string) (string, error) {
		cmd := exec.Command("../../.ci/release", append([]string{"0.1.0"}, steps...)...)
		cmd.Env = append(os.Environ(), "OUT="+out, "REGISTRY="+address, "OWNER="+owner, "HELM="+helm,
			"COSIGN="+cosign, "IMAGES="+images, "HELM_PUSH=--plain-http",
			"RENDER=--set global.imageRegistry="+address)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
}

// TestRelease checks that the packaged chart pulls what was pushed, by digest, that nothing is published
// when an image is missing, and what is signed.
func TestRelease(t *testing.T) {
	ctx, address, out := context.Background(), localRegistry(t), t.TempDir()
	script := releaseScript(t, address, out)
	if text, err := script("somebody", "images"); err == nil || !strings.Contains(text, "does not pull") {
		t.Errorf("images are pushed to where the chart does not look: %v\n%s", err, text)
	}
	r := &release{registry: address + "/storefront", version: "0.1.0"}
	for _, module := range []string{"edge", "control", "engine-relay"} {
		if err := r.push(ctx, index(t, module), module); err != nil {
			t.Fatal(err)
		}
	}
	var pushed strings.Builder
	if err := r.list(&pushed); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "pushed"), []byte(pushed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	sbom := filepath.Join(out, "edge-linux-amd64.spdx.json")
	if err := os.WriteFile(sbom, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := script("storefront", "chart", "sign", "publish")
	if err == nil || !strings.Contains(text, "curlimages/curl") || strings.Contains(text, "== publish") {
		t.Errorf("the chart is published although an image of it is missing: %v\n%s", err, text)
	}
	curl := &release{registry: address + "/curlimages", version: "8.16.0"}
	if err := curl.push(ctx, index(t, "curl"), "curl"); err != nil {
		t.Fatal(err)
	}
	if err := curl.tag(ctx); err != nil {
		t.Fatal(err)
	}
	text, err = script("storefront", "chart", "sign", "publish")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	edge := r.pushed[0].digest.String()
	for _, want := range []string{edge + " exists", "cosign sign --yes --recursive " + edge,
		"--type slsaprovenance1 --predicate " + out + "/provenance.json " + edge,
		"--type spdxjson --predicate " + sbom + " " + edge,
		"cosign sign --yes " + address + "/storefront/charts/storefront@sha256:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the release does not print %q:\n%s", want, text)
		}
	}
}
