package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/ko/pkg/build"
	"github.com/google/ko/pkg/publish"
)

// order describes what to build.
type order struct {
	source, out, root string
	release           *release // nil: nothing is pushed
	platforms         []string
	version           string
	created           v1.Time
}

// user is the user of the services, which has no name on a node.
const user = "65532:65532"

// build writes the layout of the command in one folder and describes the image of each platform. The image
// has the name of the folder.
func (o order) build(ctx context.Context, folder string) ([]made, error) {
	dir, err := filepath.Abs(filepath.Join(o.source, folder))
	if err != nil {
		return nil, err
	}
	module := filepath.Base(folder)
	path := build.StrictScheme + "storefront.internal/" + folder
	builder, err := build.NewGo(ctx, dir,
		build.WithBaseImages(o.base), build.WithPlatforms(o.platforms...), build.WithUser(user),
		build.WithCreationTime(o.created), build.WithKoDataCreationTime(o.created),
		build.WithSPDX(o.version), build.WithSBOMDir(o.out),
		build.WithConfig(map[string]build.Config{"storefront.internal/" + folder: {
			Dir: dir, Flags: build.FlagArray{"-trimpath", "-buildvcs=false",
				"-mod=readonly"}, Env: []string{"CGO_ENABLED=0", "GOWORK=off"},
			Ldflags: build.StringArray{"-s", "-w", "-buildid=", "-X",
				"storefront.internal/shared/telemetry.release=" + o.version},
		}}),
		build.WithLabel("org.opencontainers.image.title", "storefront-"+module),
		build.WithLabel("org.opencontainers.image.version", o.version),
	)
	if err != nil {
		return nil, err
	}
	result, err := builder.Build(ctx, path)
	if err != nil {
		return nil, err
	}
	layout := filepath.Join(o.out, module)
	if err := os.RemoveAll(layout); err != nil { // Publish adds to an existing layout
		return nil, err
	}
	if _, err := publish.NewLayout(layout).Publish(ctx, result, path); err != nil {
		return nil, err
	}
	if o.release != nil {
		if err := o.release.push(ctx, result, module); err != nil {
			return nil, err
		}
	}
	return o.describe(result, module)
}

// base returns an empty image: the static binaries contain certificates and time zones.
func (o order) base(context.Context, string) (name.Reference, build.Result, error) {
	ref, err := name.ParseReference("storefront.internal/empty")
	if err != nil {
		return nil, nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range o.platforms {
		platform, err := v1.ParsePlatform(p)
		if err != nil {
			return nil, nil, err
		}
		image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
			&v1.ConfigFile{
				OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
				RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}}, Config: v1.Config{WorkingDir: "/"},
			})
		if err != nil {
			return nil, nil, err
		}
		image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return ref, index, nil
}

// here is the platform of this machine.
func here() string { return "linux/" + runtime.GOARCH }

func epoch(text string) (v1.Time, error) {
	if text == "" {
		return v1.Time{Time: time.Unix(0, 0).UTC()}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return v1.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return v1.Time{Time: time.Unix(seconds, 0).UTC()}, nil
}
