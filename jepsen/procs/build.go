package procs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Environ returns the environment of the go command for all builds by tests: like releases,
// without C and without paths of this machine, so that everything is compiled only once,
// and without debug information, which would take half of the linking time.
func Environ() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath -ldflags=-w")
}

// Root returns the folder of the module in which this process was started.
func Root(ctx context.Context) (string, error) {
	goMod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(goMod))), nil
}

// BuiltEnv names a variable with the path of a claimq that was built from the current
// sources (.ci/test sets it).
const BuiltEnv = "CLAIMQ_BUILT"

// Build builds the claimq binary into dir and returns its path. It must be called inside
// the module. tags are Go build tags. Without tags it links to the binary in BuiltEnv, if
// that is set.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	if err := lookAtSources(root); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "claimq")
	if built := os.Getenv(BuiltEnv); built != "" && len(tags) == 0 {
		return path, os.Symlink(built, path)
	}
	var flags []string
	if len(tags) > 0 {
		flags = []string{"-tags", strings.Join(tags, ",")}
	}
	return Edited{}.Build(ctx, dir, flags...)
}

// lookAtSources reads every Go file of the module. The go command caches the result of a
// test until a file changes that the test has read, but does not see the files that the
// build reads. Without this, tests of processes would pass forever.
func lookAtSources(root string) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case !d.IsDir() && (strings.HasSuffix(path, ".go") || d.Name() == "go.mod" || d.Name() == "go.sum"):
			if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at the sources: %w", err)
	}
	return nil
}
