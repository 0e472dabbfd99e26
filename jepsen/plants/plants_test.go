package plants

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
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
	all := slices.Concat(All(), Rules(), Workers())
	built, err := listBuilt(t, root, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			replace, err := p.changed(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := built.check(p.folders(), replace); err != nil {
				t.Errorf("it does not compile: %v", err)
			}
		})
	}
}

// folders returns the folders of the plant's packages, as patterns of the go command.
func (p Plant) folders() []string {
	var dirs []string
	for _, e := range p.edits {
		if dir := "./" + path.Dir(e.file); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// builtPackage is what the go command tells of a package.
type builtPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// packages are those that plants change, by folder, and all that these import, by path.
type packages struct {
	byFolder map[string]*builtPackage
	byPath   map[string]*builtPackage
}

// listBuilt has the packages compiled, as they are, if they are not yet: to check one
// that a plant changes takes its own files and what the compiler noted of the others.
// It is several times as fast as compiling it.
func listBuilt(t *testing.T, root string, all []Plant) (*packages, error) {
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	var dirs []string
	for _, p := range all {
		for _, dir := range p.folders() {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, dirs...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	found := &packages{byFolder: map[string]*builtPackage{}, byPath: map[string]*builtPackage{}}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &builtPackage{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		found.byPath[p.ImportPath] = p
		if rel, err := filepath.Rel(root, p.Dir); err == nil {
			found.byFolder["./"+filepath.ToSlash(rel)] = p
		}
	}
}

// check type-checks the packages in these folders with some files replaced. Errors: the
// first of each package.
func (s *packages) check(dirs []string, replace map[string]string) error {
	files := token.NewFileSet()
	compiled := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		p := s.byPath[path]
		if p == nil || p.Export == "" {
			return nil, fmt.Errorf("%s was not compiled", path)
		}
		return os.Open(p.Export)
	})
	var errs []error
	for _, dir := range dirs {
		p := s.byFolder[dir]
		if p == nil {
			return fmt.Errorf("there is no package in %s", dir)
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			full := filepath.Join(p.Dir, name)
			source := full
			if changed, ok := replace[full]; ok {
				source = changed
			}
			f, err := parser.ParseFile(files, source, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			parsed = append(parsed, f)
		}
		conf := types.Config{Importer: compiled}
		if _, err := conf.Check(p.ImportPath, files, parsed, nil); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
