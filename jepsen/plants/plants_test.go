package plants

import (
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every plant still fits the source: what it changes is there, once, and what
// comes of it compiles.
func TestPlants_fit(t *testing.T) {
	t.Parallel()
	goMod, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(strings.TrimSpace(string(goMod)))
	for _, p := range slices.Concat(All(), Rules(), Workers()) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			overlay, err := p.overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			// It is never run: not optimizing halves the time.
			args := []string{"build", "-buildvcs=false", "-gcflags=-N -l", "-overlay", overlay}
			for _, e := range p.edits {
				if dir := "./" + path.Dir(e.file); !slices.Contains(args, dir) {
					args = append(args, dir)
				}
			}
			build := exec.CommandContext(t.Context(), "go", args...)
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("it does not compile: %v\n%s", err, out)
			}
		})
	}
}
