package procs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoHistory is returned when the checkout does not reach back to a version.
var ErrNoHistory = errors.New("the history of this checkout does not reach back so far")

// BuildLevel builds claimq, as it was when it last knew no more than the feature
// level, into dir and returns its path: of the last commit before the one that
// brought the next level. It is to be called inside the checkout.
func BuildLevel(ctx context.Context, dir string, level uint32) (string, error) {
	commit, err := lastOfLevel(ctx, level)
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, fmt.Sprintf("source-%d", level))
	if err := os.MkdirAll(source, 0o755); err != nil {
		return "", err
	}
	if err := export(ctx, commit, source); err != nil {
		return "", fmt.Errorf("export commit %s: %w", commit, err)
	}
	path := filepath.Join(dir, fmt.Sprintf("claimq-%d", level))
	// Built as Build does, so that all but claimq's own packages are in the cache.
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", fmt.Sprintf("-X main.version=level-%d", level), "-o", path, "./cmd/claimq")
	build.Dir = source
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build claimq of commit %s: %w\n%s", commit, err, out)
	}
	return path, os.RemoveAll(source)
}

// lastOfLevel returns the last commit that knows the feature level and no higher
// one.
func lastOfLevel(ctx context.Context, level uint32) (string, error) {
	next := fmt.Sprintf("FeatureLevel uint32 = %d$", level+1)
	found, err := git(ctx, "log", "--reverse", "--format=%H", "-G", next, "--", ":/fsm/node.go")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(found, "\n")
	commit := first + "^"
	if first != "" {
		_, err = git(ctx, "rev-parse", "--verify", "--quiet", commit)
	}
	if first != "" && err == nil {
		text, err := git(ctx, "show", commit+":fsm/node.go")
		if err == nil && strings.Contains(text, fmt.Sprintf("FeatureLevel uint32 = %d\n", level)) {
			return commit, nil
		}
	}
	return "", fmt.Errorf("%w: feature level %d was left by a commit that is not here; fetch it with: git fetch --unshallow (or check out with fetch-depth: 0)",
		ErrNoHistory, level)
}

// export writes the files of the commit to dir.
func export(ctx context.Context, commit, dir string) error {
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", commit)
	extract := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	archive.Dir = root // else only the folder that we are in is archived
	var archiveSaid, extractSaid bytes.Buffer
	archive.Stderr, extract.Stderr = &archiveSaid, &extractSaid
	tar, files := io.Pipe()
	archive.Stdout, extract.Stdin = files, tar
	if err := extract.Start(); err != nil {
		return err
	}
	err = archive.Run()
	err = errors.Join(err, files.CloseWithError(err), extract.Wait())
	if err != nil {
		return fmt.Errorf("%w\n%s%s", err, archiveSaid.Bytes(), extractSaid.Bytes())
	}
	return nil
}

// git runs git and returns what it printed.
func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, said.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
