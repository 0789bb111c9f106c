package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/ko/pkg/build"
)

// release pushes images by digest first. Tags follow when every image is in the registry, so that a release
// that fails half-way has no tags.
type release struct {
	registry, version string
	pushed            []pushed
}

type pushed struct {
	module string
	digest name.Digest
	object remote.Taggable
}

// registryOptions use the credentials of the container engine's configuration.
func registryOptions(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// push sends the result to the registry without a tag.
func (r *release) push(ctx context.Context, result build.Result, module string) error {
	described, ok := result.(partial.Describable)
	if !ok {
		return fmt.Errorf("neither an image nor an index: %T", result)
	}
	hash, err := described.Digest()
	if err != nil {
		return err
	}
	ref, err := name.NewDigest(r.registry+"/"+module+"@"+hash.String(), name.StrictValidation)
	if err != nil {
		return err
	}
	switch o := result.(type) {
	case v1.Image:
		err = remote.Write(ref, o, registryOptions(ctx)...)
		r.pushed = append(r.pushed, pushed{module, ref, o})
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, o, registryOptions(ctx)...)
		r.pushed = append(r.pushed, pushed{module, ref, o})
	default:
		err = fmt.Errorf("neither an image nor an index: %T", result)
	}
	return err
}

// tag gives every pushed image the version as its tag. A tag of another image is not moved.
func (r *release) tag(ctx context.Context) error {
	for _, p := range r.pushed {
		tag := p.digest.Tag(r.version)
		old, err := remote.Head(tag, registryOptions(ctx)...)
		var answer *transport.Error
		switch {
		case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		case err != nil:
			return err
		case old.Digest.String() != p.digest.DigestStr():
			return fmt.Errorf("%s exists and is %s; releases do not change", tag, old.Digest)
		}
		if err := remote.Tag(tag, p.object, registryOptions(ctx)...); err != nil {
			return err
		}
	}
	return nil
}

// list writes a line "MODULE REGISTRY/MODULE@DIGEST" for each pushed image.
func (r *release) list(to io.Writer) error {
	for _, p := range r.pushed {
		if _, err := fmt.Fprintf(to, "%s %s\n", p.module, p.digest); err != nil {
			return err
		}
	}
	return nil
}

// check asks the registries for each image of the list, one a line, and for every platform of it.
func check(ctx context.Context, images io.Reader, platforms []string, out io.Writer) error {
	var failed []error
	for lines := bufio.NewScanner(images); lines.Scan(); {
		image := strings.TrimSpace(lines.Text())
		digest, err := checkImage(ctx, image, platforms)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", image, err))
			continue
		}
		fmt.Fprintf(out, "%s exists: %s\n", image, digest)
	}
	return errors.Join(failed...)
}

func checkImage(ctx context.Context, image string, platforms []string) (digest v1.Hash, err error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return digest, err
	}
	got, err := remote.Get(ref, registryOptions(ctx)...)
	if err != nil {
		return digest, err
	}
	index, err := got.ImageIndex()
	if err != nil {
		return digest, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return digest, err
	}
	for _, p := range platforms {
		has := func(d v1.Descriptor) bool {
			return d.Platform != nil && d.Platform.OS+"/"+d.Platform.Architecture == p
		}
		if !slices.ContainsFunc(manifest.Manifests, has) {
			return digest, fmt.Errorf("it has no image for %s", p)
		}
	}
	return got.Digest, nil
}
