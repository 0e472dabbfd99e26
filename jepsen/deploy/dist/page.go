package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// library is one of the page's libraries in web/package-lock.json.
type library struct {
	name      string
	Version   string
	Integrity string // "sha512-" and a SHA-512 in base64, of npm's archive
	License   string
	Dev       bool // used only to check the page, in no build
}

// fetchLibraries puts the page's libraries where the build expects them, because a release
// without them would have other bytes.
func (o *options) fetchLibraries(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, filepath.Join(o.root, "web", "libraries"), "--need").CombinedOutput(); err != nil {
		return fmt.Errorf("fetch the page's libraries: %w\n%s", err, out)
	}
	return nil
}

// libraries returns the page's libraries, by name.
func (o *options) libraries() ([]library, error) {
	content, err := os.ReadFile(filepath.Join(o.root, "web", "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct{ Packages map[string]library }
	if err := json.Unmarshal(content, &lock); err != nil {
		return nil, fmt.Errorf("read web/package-lock.json: %w", err)
	}
	var all []library
	for path, l := range lock.Packages {
		if name, ok := strings.CutPrefix(path, "node_modules/"); ok && !l.Dev {
			l.name = name
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b library) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// writeLibrary writes the notice of one of the page's libraries.
func (o *options) writeLibrary(b *bytes.Buffer, l *library) error {
	text, err := os.ReadFile(filepath.Join(o.root, "web", "vendor", "_"+l.name+".LICENSE"))
	if err != nil {
		return err
	}
	line := strings.Repeat("=", 80)
	fmt.Fprintf(b, "\n%s\n%s %s\nhttps://www.npmjs.com/package/%s/v/%s\n%s\n\n--- LICENSE\n\n%s\n", line, l.name, l.Version, l.name, l.Version, line, bytes.TrimRight(text, "\n"))
	return nil
}

// component returns the library for the bill of materials.
func (l *library) component() (cdx.Component, error) {
	encoded, ok := strings.CutPrefix(l.Integrity, "sha512-")
	hash, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return cdx.Component{}, fmt.Errorf("library %s %s: its integrity is %q", l.name, l.Version, l.Integrity)
	}
	purl := "pkg:npm/" + l.name + "@" + l.Version
	return cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: l.name, Version: l.Version, PackageURL: purl,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(hash)}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: l.License}}},
	}, nil
}
