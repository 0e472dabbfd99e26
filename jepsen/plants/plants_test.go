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
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// Every plant still fits the source: what it changes is there, once, and what
// comes of it compiles.
func TestPlants_fit(t *testing.T) {
	t.Parallel()
	root, err := procs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(All(), Rules(), Workers(), Served(), []Plant{DroppedWrite()})
	built, err := listBuilt(t, root, all)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var sets []*plantSet
	for _, p := range all {
		replace, err := p.edited().Changed(root, dir)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		sets = addToSets(sets, p, replace)
	}
	for _, s := range sets {
		if built.check(s.plants, s.replace) == nil {
			continue
		}
		for i, p := range s.plants {
			if err := built.check(s.plants[i:i+1], s.changed[i]); err != nil {
				t.Errorf("%s: it does not compile: %v", p.Name, err)
			}
		}
	}
	t.Logf("%d plants in %d sets", len(all), len(sets))
}

// plantSet are plants that change different files, so that one look shows whether what
// comes of them compiles.
type plantSet struct {
	plants  []Plant
	changed []map[string]string // by plant, the changed files by those that they replace
	replace map[string]string   // all of them
}

// addToSets adds the plant to the first set none of whose plants changes one of its files.
func addToSets(sets []*plantSet, p Plant, replace map[string]string) []*plantSet {
	for _, s := range sets {
		if !s.changes(replace) {
			s.add(p, replace)
			return sets
		}
	}
	s := &plantSet{replace: map[string]string{}}
	s.add(p, replace)
	return append(sets, s)
}

func (s *plantSet) changes(files map[string]string) bool {
	for path := range files {
		if _, ok := s.replace[path]; ok {
			return true
		}
	}
	return false
}

func (s *plantSet) add(p Plant, replace map[string]string) {
	s.plants, s.changed = append(s.plants, p), append(s.changed, replace)
	maps.Copy(s.replace, replace)
}

// foldersOf returns the folders of the plants' packages.
func foldersOf(plants []Plant) []string {
	var dirs []string
	for _, p := range plants {
		for _, e := range p.edits {
			if dir := path.Dir(e.File); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// builtPackage is a package as the go command lists it.
type builtPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// packages are those that plants change, by folder, and all that these import, by path.
// Their files are read once for all plants.
type packages struct {
	byFolder map[string]*builtPackage
	byPath   map[string]*builtPackage

	files    *token.FileSet
	imported types.Importer
	parsed   map[string]*ast.File // unchanged, by path
}

// listBuilt compiles the unchanged packages if necessary. A package that a plant changes is
// then type-checked against the export data of the others, which is several times as fast
// as compiling it.
func listBuilt(t *testing.T, root string, all []Plant) (*packages, error) {
	of := map[string][]string{} // packages, by their module's folder
	for _, folder := range foldersOf(all) {
		module, pkg := procs.ModuleOf(root, folder)
		of[module] = append(of[module], pkg)
	}
	var out []byte
	for module, pkgs := range of {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}, pkgs...)...)
		cmd.Dir, cmd.Env = module, procs.Environ()
		listed, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list packages in %s: %w", module, err)
		}
		out = append(out, listed...)
	}
	found := &packages{byFolder: map[string]*builtPackage{}, byPath: map[string]*builtPackage{}, files: token.NewFileSet(), parsed: map[string]*ast.File{}}
	found.imported = importer.ForCompiler(found.files, "gc", found.export)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &builtPackage{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		found.byPath[p.ImportPath] = p
		if rel, err := filepath.Rel(root, p.Dir); err == nil {
			found.byFolder[filepath.ToSlash(rel)] = p
		}
	}
}

// check type-checks the packages that the plants change, with some files replaced. Errors:
// the first of each package.
func (s *packages) check(plants []Plant, replace map[string]string) error {
	var errs []error
	for _, dir := range foldersOf(plants) {
		p := s.byFolder[dir]
		if p == nil {
			return fmt.Errorf("there is no package in %s", dir)
		}
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := s.parse(filepath.Join(p.Dir, name), replace)
			if err != nil {
				return err
			}
			parsed = append(parsed, f)
		}
		conf := types.Config{Importer: s.imported}
		if _, err := conf.Check(p.ImportPath, s.files, parsed, nil); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// parse parses the file, or what replaces it.
func (s *packages) parse(path string, replace map[string]string) (*ast.File, error) {
	if changed, ok := replace[path]; ok {
		return parser.ParseFile(s.files, changed, nil, parser.SkipObjectResolution)
	}
	if f, ok := s.parsed[path]; ok {
		return f, nil
	}
	f, err := parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution)
	s.parsed[path] = f
	return f, err
}

// export opens what the compiler noted of a package.
func (s *packages) export(path string) (io.ReadCloser, error) {
	p := s.byPath[path]
	if p == nil || p.Export == "" {
		return nil, fmt.Errorf("%s was not compiled", path)
	}
	return os.Open(p.Export)
}
