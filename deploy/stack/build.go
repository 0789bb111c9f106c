package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"storefront.internal/deploy/local/project"
)

// Build compiles programs of the project ("edge", "deploy/demoengine", …) into a folder. Flags are those of
// `go build`.
func Build(ctx context.Context, p project.Project, dir string, flags []string, programs ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := append(append([]string{"build"}, flags...), "-o", dir+"/")
	for _, name := range programs {
		args = append(args, "storefront.internal/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
