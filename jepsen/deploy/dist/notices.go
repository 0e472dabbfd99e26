package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module of which the binary contains packages.
type module struct {
	path, version, dir string
	folders            map[string]bool // of its packages in the binary, and those above
}

// notices returns the licences of everything in the binary that is not ours: the modules, Go,
// single folders, and the page's libraries. A module without a licence is an error.
func (o *options) notices(ctx context.Context, goos, arch string) ([]byte, error) {
	modules, err := o.modules(ctx, goos, arch)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "claimq %s is made with the following, each under the licence that follows its name.\n"+
		"The source of each is at the address beside it, unchanged.\n", o.version)
	root, err := o.goTool(ctx, goos, arch, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, err := o.goTool(ctx, goos, arch, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	std := module{path: "Go", version: strings.TrimSpace(string(version)), dir: strings.TrimSpace(string(root))}
	std.folders = map[string]bool{std.dir: true}
	for _, m := range append([]module{std}, modules...) {
		if err := m.write(&b); err != nil {
			return nil, fmt.Errorf("notices of %s: %w", m.path, err)
		}
	}
	libraries, err := o.libraries()
	if err != nil {
		return nil, err
	}
	for i := range libraries {
		if err := o.writeLibrary(&b, &libraries[i]); err != nil {
			return nil, fmt.Errorf("notices of %s: %w", libraries[i].name, err)
		}
	}
	return b.Bytes(), nil
}

// modules returns the modules of the packages in the binary, by path, without our own.
func (o *options) modules(ctx context.Context, goos, arch string) ([]module, error) {
	listed, err := o.goTool(ctx, goos, arch, "list", "-deps", "-json=Dir,Module", "./cmd/claimq")
	if err != nil {
		return nil, err
	}
	byPath := make(map[string]module)
	for d := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		m, ok := byPath[p.Module.Path]
		if !ok {
			m = module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir, folders: make(map[string]bool)}
			byPath[m.path] = m
		}
		for dir := p.Dir; len(dir) >= len(m.dir); dir = filepath.Dir(dir) {
			m.folders[dir] = true
		}
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b module) int { return strings.Compare(a.path, b.path) }), nil
}

var noticeName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([._-].*)?$`)

// write writes the module's notices: those at its root, and those of folders with packages in
// the binary.
func (m *module) write(b *bytes.Buffer) error {
	where := "https://pkg.go.dev/" + m.path + "@" + m.version
	if m.path == "Go" {
		where = "https://go.dev/dl/"
	}
	fmt.Fprintf(b, "\n%s\n%s %s\n%s\n%s\n", strings.Repeat("=", 80), m.path, m.version, where, strings.Repeat("=", 80))
	found := 0
	for _, dir := range slices.Sorted(maps.Keys(m.folders)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !noticeName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(m.dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "\n--- %s\n\n%s\n", filepath.ToSlash(name), bytes.TrimRight(text, "\n"))
			found++
		}
	}
	if found == 0 {
		return fmt.Errorf("%s has no licence", m.dir)
	}
	return nil
}
