package procs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the claimq binary into dir and returns its path. It is to be
// called inside the module. tags are Go build tags.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	goMod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	path := filepath.Join(dir, "claimq")
	args := []string{"build", "-o", path}
	if len(tags) > 0 {
		args = append(args, "-tags", strings.Join(tags, ","))
	}
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/claimq")...)
	build.Dir = filepath.Dir(strings.TrimSpace(string(goMod)))
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build claimq: %w\n%s", err, out)
	}
	return path, nil
}
