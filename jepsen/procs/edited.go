package procs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrGone is returned when the text that an edit replaces is not there once.
var ErrGone = errors.New("the source has moved on")

// Edit replaces Old, which is in the file once, by New.
type Edit struct{ File, Old, New string }

// Edited is the source as it is, but for some edits. No file of the checkout changes.
type Edited struct {
	Name    string // of what is written for it, which it ends in; "" only without edits
	Program string // "" is claimq
	Edits   []Edit
}

// Build builds the program into dir and returns its path. flags are more of go build's.
// It is to be called inside the module. Errors: ErrGone, wrapped, or the build's.
func (e Edited) Build(ctx context.Context, dir string, flags ...string) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	program := cmp.Or(e.Program, "./cmd/claimq")
	path := strings.TrimSuffix(filepath.Join(dir, filepath.Base(program)+"-"+e.Name), "-")
	args := append([]string{"build", "-o", path}, flags...)
	if len(e.Edits) > 0 {
		overlay, err := e.Overlay(root, dir)
		if err != nil {
			return "", fmt.Errorf("%s: %w", e.Name, err)
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, program)...)
	build.Dir = root
	build.Env = Environ()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s %s: %w\n%s", program, e.Name, err, out)
	}
	return path, nil
}

// Overlay writes the changed files into dir, and the file that tells the go command of
// them (-overlay), whose path it returns.
func (e Edited) Overlay(root, dir string) (string, error) {
	replace, err := e.Changed(root, dir)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, e.Name+"-overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// Changed writes the changed files into dir, and returns their paths by those of the
// files that they replace.
func (e Edited) Changed(root, dir string) (map[string]string, error) {
	texts := map[string]string{} // by file
	for _, edit := range e.Edits {
		if _, ok := texts[edit.File]; !ok {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(edit.File)))
			if err != nil {
				return nil, err
			}
			texts[edit.File] = string(text)
		}
		if n := strings.Count(texts[edit.File], edit.Old); n != 1 {
			return nil, fmt.Errorf("%w: %s has this %d times, not once:\n%s", ErrGone, edit.File, n, edit.Old)
		}
		texts[edit.File] = strings.Replace(texts[edit.File], edit.Old, edit.New, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		changed := filepath.Join(dir, e.Name+"-"+strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
			return nil, err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = changed
	}
	return replace, nil
}

// levelFile says which feature level a binary knows, in the line that begins so.
const (
	levelFile = "fsm/record/level.go"
	levelText = "\nconst FeatureLevel uint32 = "
)

// BuildLevel builds claimq, which knows the feature level known, as it is, but for knowing
// no more than the level, into dir and returns its path. It is to be called inside the
// module. A version of the past would tell more, and there is none: nothing was released,
// and formats have changed since without a level of their own. Errors: as Edited.Build.
func BuildLevel(ctx context.Context, dir string, known, level uint32) (string, error) {
	line := func(level uint32) string { return fmt.Sprintf("%s%d\n", levelText, level) }
	version := fmt.Sprintf("level-%d", level)
	e := Edited{Name: version, Edits: []Edit{{File: levelFile, Old: line(known), New: line(level)}}}
	return e.Build(ctx, dir, "-ldflags", "-w -X main.version="+version)
}
