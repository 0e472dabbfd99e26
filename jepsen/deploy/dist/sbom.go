package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom returns the bill of materials of a binary, CycloneDX in JSON: the modules that the
// binary itself lists, each with its version and its sum in go.sum, the standard library,
// and the libraries of its page. Its bytes depend only on these, version and time.
func sbom(binary string, libraries []library, version string, at time.Time) ([]byte, error) {
	built, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	claimq := component(built.Main.Path, version)
	claimq.Type = cdx.ComponentTypeApplication
	claimq.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	claimq.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	claimq.Properties = buildProperties(built)
	components := []cdx.Component{component("std", strings.TrimPrefix(built.GoVersion, "go"))}
	for _, m := range built.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced by %s: a release is made of what go.sum has", m.Path, m.Replace.Path)
		}
		c := component(m.Path, m.Version)
		if c.Hashes, err = moduleHash(m.Sum); err != nil {
			return nil, fmt.Errorf("module %s %s: %w", m.Path, m.Version, err)
		}
		components = append(components, c)
	}
	for i := range libraries {
		c, err := libraries[i].component()
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i := range components {
		refs[i] = components[i].BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &claimq}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: claimq.BOMRef, Dependencies: &refs}}
	unnamed, err := encodeSBOM(bom)
	if err != nil {
		return nil, err
	}
	// CycloneDX requires a unique number. It is derived, so that it is the same when built
	// again.
	bom.SerialNumber = uuid.NewHash(sha256.New(), uuid.NameSpaceURL, unnamed, 8).URN()
	return encodeSBOM(bom)
}

func encodeSBOM(bom *cdx.BOM) ([]byte, error) {
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return b.Bytes(), nil
}

func component(path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}

// buildProperties describes the binary's target and build settings.
func buildProperties(built *buildinfo.BuildInfo) *[]cdx.Property {
	var properties []cdx.Property
	for _, s := range built.Settings {
		switch s.Key {
		case "CGO_ENABLED", "GOARCH", "GOOS", "GOAMD64", "GOARM64":
			properties = append(properties, cdx.Property{Name: "cdx:gomod:build:env:" + s.Key, Value: s.Value})
		}
	}
	return &properties
}

// moduleHash converts a module's hash in go.sum, "h1:" and a SHA-256 in base64, for
// CycloneDX.
func moduleHash(sum string) (*[]cdx.Hash, error) {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	hash, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(hash) != sha256.Size {
		return nil, fmt.Errorf("its sum is %q", sum)
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(hash)}}, nil
}
