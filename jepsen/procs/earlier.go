package procs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoLevel is returned when the source does not say its feature level as it did.
var ErrNoLevel = errors.New("the source does not say its feature level in the form that is replaced")

// levelFile says which feature level a binary knows, by levelText.
const (
	levelFile = "fsm/node.go"
	levelText = "const FeatureLevel uint32 = "
)

// BuildLevel builds claimq, as it is, but for knowing no more than the feature level,
// into dir and returns its path. It is to be called inside the checkout. A version of
// the past would tell more, and there is none: nothing was released, and formats have
// changed since without a level of their own.
func BuildLevel(ctx context.Context, dir string, level uint32) (string, error) {
	goMod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(goMod)))
	overlay, err := levelOverlay(root, dir, level)
	if err != nil {
		return "", fmt.Errorf("feature level %d: %w", level, err)
	}
	path := filepath.Join(dir, fmt.Sprintf("claimq-%d", level))
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay,
		"-ldflags", fmt.Sprintf("-X main.version=level-%d", level), "-o", path, "./cmd/claimq")
	build.Dir = root
	build.Env = Environ()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build claimq of feature level %d: %w\n%s", level, err, out)
	}
	return path, nil
}

// levelOverlay writes the file that says the level into dir, and the one that tells the
// build of it, whose path it returns.
func levelOverlay(root, dir string, level uint32) (string, error) {
	original := filepath.Join(root, filepath.FromSlash(levelFile))
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	before, after, ok := strings.Cut(string(text), levelText)
	_, rest, end := strings.Cut(after, "\n")
	if !ok || !end || strings.Contains(rest, levelText) {
		return "", fmt.Errorf("%w: %s: %q", ErrNoLevel, levelFile, levelText)
	}
	changed := filepath.Join(dir, fmt.Sprintf("level-%d.go", level))
	if err := os.WriteFile(changed, fmt.Appendf(nil, "%s%s%d\n%s", before, levelText, level, rest), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("level-%d.json", level))
	return path, os.WriteFile(path, replace, 0o600)
}
