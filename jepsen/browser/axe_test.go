package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// axe checks whether everybody can use a page. Only tests use it.
const (
	axePackage   = "axe-core@4.14.1"
	axeFile      = "axe-core-4.14.1.tgz"
	axeIntegrity = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axeSource returns axe-core from npm, pinned to the version that was chosen.
func axeSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", axePackage)
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(dir, axeFile))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(archive)
	if base64.StdEncoding.EncodeToString(sum[:]) != axeIntegrity {
		t.Fatalf("%s is another one: %x", axeFile, sum)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("axe.min.js is not in it: %v", err)
		}
		if h.Name != "package/axe.min.js" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// The rules for axe: everything in WCAG 2.2 AA, or only what a theme can change.
const (
	axeAll     = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`
	axeColours = `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`
)

// accessible fails the test if axe finds a violation of the rules.
func (b tab) accessible(where, axe, what string) {
	b.t.Helper()
	if !eval[bool](b, `"axe" in window`) {
		eval[bool](b, axe+`; true`)
	}
	found := eval[[]string](b, `axe.run(document, {runOnly: `+what+`, resultTypes: ["violations"]})
		.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`)
	for _, f := range found {
		b.t.Errorf("%s: axe: %s", where, f)
	}
}
