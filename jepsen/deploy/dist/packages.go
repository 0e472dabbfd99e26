package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the formats
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// installed lists the files of a package except for the binary and the notices, by the place
// where it installs them.
var installed = [...]struct {
	to, from string
	kind     string // "": an ordinary file
	mode     os.FileMode
}{
	{"/etc/claimq", "", nfpmfiles.TypeDir, 0o750},
	{"/etc/claimq/claimq.yaml", "deploy/systemd/claimq.yaml", nfpmfiles.TypeConfigNoReplace, 0o640},
	{"/usr/lib/systemd/system/claimq-work@.service", "deploy/systemd/claimq-work@.service", "", 0o644},
	{"/usr/lib/systemd/system/claimq.service", "deploy/systemd/claimq.service", "", 0o644},
	{"/usr/lib/sysusers.d/claimq.conf", "deploy/systemd/claimq.sysusers", "", 0o644},
	{"/usr/share/doc/claimq/CHANGELOG.md", "CHANGELOG.md", "", 0o644},
	{"/usr/share/doc/claimq/README.md", "README.md", "", 0o644},
	{"/usr/share/doc/claimq/SECURITY.md", "SECURITY.md", "", 0o644},
	{"/usr/share/doc/claimq/cli.md", "docs/cli.md", "", 0o644},
	{"/usr/share/doc/claimq/copyright", "LICENSE", "", 0o644},
}

// formats are the kinds of packages, and what the scripts need of each distribution: useradd.
var formats = [...]struct{ name, needs string }{{"deb", "passwd"}, {"rpm", "shadow-utils"}}

// writePackages makes a package of each format for a Linux binary, and returns their paths. Their
// bytes depend only on the version, the time and the files.
func (o *options) writePackages(arch, binary, notices string) (paths []string, err error) {
	for _, f := range formats {
		packager, err := nfpm.Get(f.name)
		if err != nil {
			return nil, err
		}
		info := o.packageInfo(arch, binary, notices)
		info.Depends = []string{f.needs}
		if err := nfpm.PrepareForPackager(info, f.name); err != nil {
			return nil, fmt.Errorf("prepare the %s: %w", f.name, err)
		}
		path := filepath.Join(o.out, packager.ConventionalFileName(info))
		out, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(packager.Package(info, out), out.Close()); err != nil {
			return nil, fmt.Errorf("write the %s: %w", f.name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (o *options) packageInfo(arch, binary, notices string) *nfpm.Info {
	script := func(name string) string { return filepath.Join(o.root, "deploy", "package", name) }
	at := func(mode os.FileMode) *nfpmfiles.ContentFileInfo {
		return &nfpmfiles.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: o.time}
	}
	contents := nfpmfiles.Contents{
		{Source: binary, Destination: "/usr/bin/claimq", FileInfo: at(0o755)},
		{Source: notices, Destination: "/usr/share/doc/claimq/THIRD_PARTY_NOTICES", FileInfo: at(0o644)},
	}
	for _, f := range installed {
		c := &nfpmfiles.Content{Destination: f.to, Type: f.kind, FileInfo: at(f.mode)}
		if f.from != "" {
			c.Source = filepath.Join(o.root, filepath.FromSlash(f.from))
		}
		contents = append(contents, c)
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "claimq", Arch: arch, Platform: "linux", Version: packageVersion(o.version), VersionSchema: "none", Release: "1",
		Section: "net", Priority: "optional", Maintainer: "claimq, https://github.com/claimq/claimq", Vendor: "claimq",
		Homepage: "https://github.com/claimq/claimq", License: "Apache-2.0", Description: "Replicated task queue\nTasks are claimed by one worker at a time, and survive the loss of a node.",
		DisableGlobbing: true, MTime: o.time,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PostInstall: script("postinstall.sh"), PreRemove: script("preremove.sh"), PostRemove: script("postremove.sh")},
			RPM:      nfpm.RPM{BuildHost: "claimq", Summary: "Replicated task queue"},
		},
	})
}

// sinceRelease matches what git describe adds for commits after a release: their number, and the
// last of them.
var sinceRelease = regexp.MustCompile(`-(\d+)-(g[0-9a-f]+)$`)

// packageVersion returns a version that dpkg and rpm order: a build without a release before it
// first, then v1.2.3-rc.1, v1.2.3, and commits after it.
func packageVersion(version string) string {
	number, isRelease := strings.CutPrefix(version, "v")
	if !isRelease {
		return "0~" + strings.ReplaceAll(version, "-", "~")
	}
	return strings.ReplaceAll(sinceRelease.ReplaceAllString(number, "+$1.$2"), "-", "~")
}
