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

// checkSBOM holds a bill of materials against go.mod, go.sum and the binary.
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
		if c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version || c.BOMRef != c.PackageURL {
			t.Errorf("%s has the addresses %s, %s", c.Name, c.PackageURL, c.BOMRef)
		}
	}
	if d := cmp.Diff(wantModules(t), got); d != "" {
		t.Errorf("the bill is not of what the binary is built from (-want +got):\n%s", d)
	}
	if refs := (*bom.Dependencies)[0]; refs.Ref != about.BOMRef || len(*refs.Dependencies) != len(got) {
		t.Errorf("the bill says that %s needs %v", refs.Ref, refs.Dependencies)
	}
}

// wantModules returns the sums of go.sum, in hexadecimal, of the modules that the
// command is built from by go.mod, and the standard library.
func wantModules(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/claimq")
	cmd.Dir = filepath.Join("..", "..")
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
	for line := range strings.Lines(string(readFile(t, "..", "..", "go.sum"))) {
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
