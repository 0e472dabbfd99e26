// Command walls fails if too many files share a folder, tests aside, if too many files of a
// package use the fields of the same struct, or if a package whose doc comment lists its files
// has one that uses a file listed after it.
package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	filesMax   = 35 // in a folder
	sharersMax = 25 // files of a package that use the fields of one struct
)

func main() {
	cfg := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedExportFile | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo}
	found, err := packages.Load(cfg, os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "walls:", err)
		os.Exit(1)
	}
	wrong := packages.PrintErrors(found) > 0
	for _, p := range found {
		if n := filesIn(p.Dir); n > filesMax {
			wrong = true
			fmt.Printf("%s has %d files beside tests, more than %d: give a part of it a room of its own\n", p.PkgPath, n, filesMax)
		}
		for _, problem := range outOfOrder(p) {
			wrong = true
			fmt.Printf("%s: %s\n", p.PkgPath, problem)
		}
		sharers := make(map[string][]string) // files, by struct
		for _, f := range p.Syntax {
			name := filepath.Base(p.Fset.Position(f.Package).Filename)
			for of := range structsOf(f, p.TypesInfo) {
				sharers[of] = append(sharers[of], name)
			}
		}
		for of, files := range sharers {
			if len(files) > sharersMax {
				wrong = true
				slices.Sort(files)
				fmt.Printf("%s: %d files use fields of %s, more than %d: %s\n", p.PkgPath, len(files), of, sharersMax, strings.Join(files, " "))
			}
		}
	}
	if wrong {
		os.Exit(1)
	}
}

// filesIn returns the number of Go files in a folder except tests, for all platforms.
func filesIn(dir string) int {
	all, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	tests, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return len(all) - len(tests)
}

// outOfOrder returns what is wrong with the files of a package whose doc comment lists them
// in reading order, in indented lines: that a file is missing in the list, or uses a
// declaration of a file listed after it.
func outOfOrder(p *packages.Package) (problems []string) {
	place := make(map[string]int)
	for _, f := range p.Syntax {
		if !strings.Contains(f.Doc.Text(), "files in reading order") {
			continue
		}
		for line := range strings.Lines(f.Doc.Text()) {
			if strings.HasPrefix(line, "\t") {
				for _, word := range strings.Fields(line) {
					if strings.HasSuffix(word, ".go") {
						place[word] = len(place) + 1
					}
				}
			}
		}
	}
	if len(place) == 0 {
		return nil
	}
	back := make(map[string]map[string]bool) // names, by the two files
	for id, used := range p.TypesInfo.Uses {
		user, declarer := fileOf(p, id.Pos()), fileOf(p, used.Pos())
		if used.Pkg() != p.Types || user == declarer {
			continue
		}
		for _, name := range []string{user, declarer} {
			if place[name] == 0 {
				back[name+" is not in the package's list of files"] = nil
			}
		}
		if place[user] < place[declarer] {
			pair := user + " uses " + declarer + ", which is listed after it"
			if back[pair] == nil {
				back[pair] = make(map[string]bool)
			}
			back[pair][used.Name()] = true
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(back)) {
		problems = append(problems, strings.TrimSuffix(pair+": "+strings.Join(slices.Sorted(maps.Keys(back[pair])), " "), ": "))
	}
	return problems
}

// fileOf returns the name of the file at the position.
func fileOf(p *packages.Package, at token.Pos) string {
	return filepath.Base(p.Fset.Position(at).Filename)
}

// structsOf returns the structs whose fields the file uses. For a field of an embedded
// struct that is the struct that declares it.
func structsOf(f *ast.File, info *types.Info) map[string]bool {
	used := make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		expr, ok := n.(*ast.SelectorExpr)
		if !ok || info.Selections[expr] == nil || info.Selections[expr].Kind() != types.FieldVal {
			return true
		}
		s := info.Selections[expr]
		t, path := s.Recv(), s.Index()
		for _, i := range path[:len(path)-1] {
			t = pointed(t).Underlying().(*types.Struct).Field(i).Type()
		}
		if named, ok := pointed(t).(*types.Named); ok {
			used[named.Origin().String()] = true
		}
		return true
	})
	return used
}

// pointed returns the type that t points to, or t itself if it is not a pointer.
func pointed(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return types.Unalias(p.Elem())
	}
	return types.Unalias(t)
}
