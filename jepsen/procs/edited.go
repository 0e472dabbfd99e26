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

// ErrGone is returned when the text that an edit replaces is not exactly once in the file.
var ErrGone = errors.New("the source has moved on")

// Edit replaces Old, which must be in the file exactly once, by New.
type Edit struct{ File, Old, New string }

// Edited is the current source with some edits. No file of the checkout is changed.
type Edited struct {
	Name    string // ends the names of files written for it; may be "" only without edits
	Program string // "" is claimq
	Edits   []Edit
}

// Build builds the program into dir and returns its path. flags are additional flags of go
// build. It must be called inside the module. Errors: ErrGone, wrapped, or the build's.
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

// Overlay writes the changed files into dir, and the file for go's -overlay flag that lists
// them, whose path it returns.
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

// Changed writes the changed files into dir, and returns their paths, keyed by the files
// that they replace.
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

// levelFile contains the line, with this beginning, that says which feature level a binary
// knows.
const (
	levelFile = "fsm/record/level.go"
	levelText = "\nconst FeatureLevel uint32 = "
)

// BuildLevel builds a claimq from current sources that knows only the given level instead
// of known, into dir, and returns its path. It must be called inside the module. A real old
// version would be a better test, but there is none: nothing was released, and formats have
// changed since without a level of their own. Errors: as in Edited.Build.
func BuildLevel(ctx context.Context, dir string, known, level uint32) (string, error) {
	line := func(level uint32) string { return fmt.Sprintf("%s%d\n", levelText, level) }
	version := fmt.Sprintf("level-%d", level)
	e := Edited{Name: version, Edits: []Edit{{File: levelFile, Old: line(known), New: line(level)}}}
	return e.Build(ctx, dir, "-ldflags", "-w -X main.version="+version)
}
