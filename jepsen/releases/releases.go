// Package releases has the versions of claimq that were released. Upgrade tests begin with their binaries, and files
// whose form a release has fixed are compared with its own.
package releases

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/claimq/claimq/internal/procs"
)

// Release is a version and its commit.
type Release struct{ Version, Commit string }

// All lists the releases, the first one first. CONTRIBUTING.md says when a release is added, InCheckout which of them
// can be built.
var All = []Release{{"v0.1.0", "0c2ba05fc27e6dd01ae5be2f350311492ad7ebdd"}}

// Build builds the release's claimq from its commit, in a new folder of dir, and returns its path. It has no page.
func (r Release) Build(ctx context.Context, dir string) (string, error) {
	root, err := procs.Root(ctx)
	if err != nil {
		return "", err
	}
	sources := filepath.Join(dir, r.Version)
	if err := os.Mkdir(sources, 0o755); err != nil {
		return "", err
	}
	packed, binary := sources+".tar", filepath.Join(sources, "claimq")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "--format=tar", "--output", packed, r.Commit},
		{"tar", "-C", sources, "-xf", packed},
		{"go", "-C", sources, "build", "-o", binary, "-ldflags", "-w -X main.version=" + r.Version, "./cmd/claimq"},
	} {
		if _, err := run(ctx, args...); err != nil {
			return "", fmt.Errorf("build %s: %w", r.Version, err)
		}
	}
	return binary, os.Remove(packed)
}

// InCheckout returns those of the releases whose commits the checkout at root has. A shallow clone may lack any of
// them; that another checkout lacks one is an error.
func InCheckout(ctx context.Context, root string, all []Release) (found []Release, err error) {
	shallow, err := run(ctx, "git", "-C", root, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return nil, fmt.Errorf("look for releases: %w", err)
	}
	for _, r := range all {
		_, err := run(ctx, "git", "-C", root, "cat-file", "-e", r.Commit+"^{commit}")
		switch {
		case err == nil:
			found = append(found, r)
		case strings.TrimSpace(shallow) != "true":
			return nil, fmt.Errorf("look for %s: %w", r.Version, err)
		}
	}
	return found, nil
}

// Changed returns the release's files below the folder of the checkout at root that are not as they were, or are gone.
func (r Release) Changed(ctx context.Context, root, folder string) ([]string, error) {
	// Files that were added are not the release's.
	out, err := run(ctx, "git", "-C", root, "diff", "--name-only", "--no-renames", "--diff-filter=a", r.Commit, "--", folder)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", folder, r.Version, err)
	}
	return strings.Fields(out), nil
}

// run runs a command and returns what it prints.
func run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = procs.Environ()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
