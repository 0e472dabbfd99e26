package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// pageLibraries are the libraries that were decided on, by name, with the SHA-512 of npm's
// archives: a release has no others.
var pageLibraries = map[string]struct{ version, sum, says string }{
	"preact": {"11.2.0", "fc77c723fecdf387ba1ab581277276f34cf798b6912620dc4af8ff03ecbfe006cb9cd0ffd549461ded6c47aa18b931b021dd273fb76a0d4f4e9cbc4c3d9ef106", "The MIT License"},
	"htm":    {"3.1.1", "f7cdd5ca0f0dc1413b26467a3663aaa4267eb21d5b2afda2613954933956980e490f669c2a8c5de0a5716cc9b15fff399ad7dd9c399316834a720e43180bf135", "Apache License"},
	"uplot":  {"1.6.32", "2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023", "MIT License"},
}

// checkSBOM compares a bill of materials with go.mod, go.sum and the binary.
func checkSBOM(t *testing.T, bill, binary []byte, at time.Time) {
	t.Helper()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	about := bom.Metadata.Component
	if bom.SpecVersion != cdx.SpecVersion1_6 || !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") || bom.Metadata.Timestamp != at.Format(time.RFC3339) {
		t.Errorf("the bill is of %s, %s, %s", bom.SpecVersion, bom.SerialNumber, bom.Metadata.Timestamp)
	}
	if about.Name != "github.com/claimq/claimq" || about.Version != "v1.2.3" || (*about.Hashes)[0].Value != fmt.Sprintf("%x", sha256.Sum256(binary)) {
		t.Errorf("the bill is about %+v", about)
	}
	if p := fmt.Sprint(*about.Properties); !strings.Contains(p, "GOOS "+runtime.GOOS) || !strings.Contains(p, "GOARCH "+runtime.GOARCH) {
		t.Errorf("the bill is for %s", p)
	}
	got := make(map[string]string)
	for _, c := range *bom.Components {
		sum := ""
		if c.Hashes != nil {
			sum = (*c.Hashes)[0].Value
		}
		got[c.Name+" "+c.Version] = sum
		kind := "golang"
		if _, ok := pageLibraries[c.Name]; ok {
			kind = "npm"
		}
		if c.PackageURL != "pkg:"+kind+"/"+c.Name+"@"+c.Version || c.BOMRef != c.PackageURL {
			t.Errorf("%s has the addresses %s, %s", c.Name, c.PackageURL, c.BOMRef)
		}
	}
	want := wantModules(t)
	for name, l := range pageLibraries {
		want[name+" "+l.version] = l.sum
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the bill is not of what the binary is built from (-want +got):\n%s", d)
	}
	if refs := (*bom.Dependencies)[0]; refs.Ref != about.BOMRef || len(*refs.Dependencies) != len(got) {
		t.Errorf("the bill says that %s needs %v", refs.Ref, refs.Dependencies)
	}
}

// wantModules returns the sums in go.sum, in hexadecimal, of the modules that the command
// is built from by go.mod, and the standard library.
func wantModules(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/claimq")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	listed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{"std " + strings.TrimPrefix(runtime.Version(), "go"): ""}
	for line := range strings.Lines(string(listed)) {
		if line = strings.TrimSpace(line); line != "" {
			modules[line] = "not in go.sum"
		}
	}
	for line := range strings.Lines(string(readFile(t, "..", "..", "..", "go.sum"))) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), " h1:")
		if _, ok := modules[name]; !ok {
			continue
		}
		hash, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = hex.EncodeToString(hash)
	}
	if len(modules) < 20 {
		t.Fatalf("the binary is built from %v alone", slices.Sorted(maps.Keys(modules)))
	}
	return modules
}
