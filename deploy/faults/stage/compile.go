package stage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"storefront.internal/deploy/local/project"
)

// Compile builds programs with crash points into a folder, with an overlay of changed files where one is named.
func Compile(ctx context.Context, p project.Project, dir, overlay string, programs ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-tags=chaos", "-o", dir + "/"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
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
