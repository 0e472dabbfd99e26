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
	Program string // its folder, relative to claimq's module; it may belong to another module. "": cmd/claimq
	Edits   []Edit
}

// Build builds the program into dir and returns its path. flags are additional flags of go build. It must be called
// inside the module, or in one that needs it. Errors: ErrGone, wrapped, or the build's.
func (e Edited) Build(ctx context.Context, dir string, flags ...string) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	module, program := ModuleOf(root, cmp.Or(e.Program, "cmd/claimq"))
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
	build.Dir = module
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

// BuildNext builds a claimq from current sources that knows one feature level more than known,
// the highest of these sources, into dir, and returns its path. That level brings the command
// that sets the server's defaults. Errors: as in Edited.Build.
func BuildNext(ctx context.Context, dir string, known uint32) (string, error) {
	version := fmt.Sprintf("level-%d", known+1)
	e := Edited{Name: version, Edits: []Edit{
		{File: "fsm/record/header.go", Old: fmt.Sprintf("\nvar FeatureLevel uint32 = %d\n", known), New: fmt.Sprintf("\nvar FeatureLevel uint32 = %d\n", known+1)},
		{File: "fsm/command/table.go", Old: `Name: "set defaults", Level: 1`, New: fmt.Sprintf(`Name: "set defaults", Level: %d`, known+1)},
	}}
	return e.Build(ctx, dir, "-ldflags", "-w -X main.version="+version)
}
