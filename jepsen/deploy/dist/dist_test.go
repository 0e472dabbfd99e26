package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/internal/procs"
)

// release is a release for the machine that runs the test.
type release struct {
	dir, name     string // name: of the archive, without .tar.gz
	archive, bill []byte
	sums          string
}

func buildHere(t *testing.T, at time.Time, signKey string) release {
	t.Helper()
	o := options{root: "../../..", out: t.TempDir(), version: "v1.2.3", targets: []string{runtime.GOOS + "/" + runtime.GOARCH}, time: at, signKey: signKey}
	if err := o.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := release{dir: o.out, name: "claimq_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH}
	r.archive, r.bill = readFile(t, r.dir, r.name+".tar.gz"), readFile(t, r.dir, r.name+".cdx.json")
	r.sums = string(readFile(t, r.dir, "SHA256SUMS"))
	return r
}

// files returns the names of the files that SHA256SUMS has, in its order.
func (r *release) files() []string {
	names := []string{r.name + ".tar.gz", r.name + ".cdx.json"}
	if runtime.GOOS == "linux" {
		names = append(names, "claimq_1.2.3-1_"+runtime.GOARCH+".deb", "claimq-1.2.3-1."+rpmArch[runtime.GOARCH]+".rpm")
	}
	return names
}

// rpmArch has the names of architectures in packages of rpm.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// unpack returns the content of an archive's files by name, and their headers.
func unpack(t *testing.T, archive []byte) (files map[string][]byte, headers []*tar.Header) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files = make(map[string][]byte)
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
}

// An archive contains the binary of that version, the texts and all licences, and is the
// same when it is built again.
func TestBuild(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0).UTC()
	key := makeKey(t, "ed25519")
	built := buildHere(t, at, key)
	name := built.name
	files, headers := unpack(t, built.archive)
	var names []string
	for _, h := range headers {
		names = append(names, strings.TrimPrefix(h.Name, name+"/"))
		mode := int64(0o644)
		if h.Name == name+"/claimq" {
			mode = 0o755
		}
		if h.Mode != mode || !h.ModTime.Equal(at) || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s has mode %o, time %s, owner %d:%d", h.Name, h.Mode, h.ModTime, h.Uid, h.Gid)
		}
	}
	slices.Sort(names)
	want := []string{"CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "THIRD_PARTY_NOTICES", "claimq", "cli.md", "systemd/claimq-work@.service", "systemd/claimq.service", "systemd/claimq.sysusers", "systemd/claimq.yaml"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	var sums strings.Builder
	for _, made := range built.files() {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(readFile(t, built.dir, made)), made)
	}
	if built.sums != sums.String() {
		t.Errorf("SHA256SUMS is %q, want %q", built.sums, sums.String())
	}
	checkSignature(t, built.dir, key)

	binary := filepath.Join(t.TempDir(), "claimq")
	if err := procs.WriteExecutable(binary, files[name+"/claimq"]); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "claimq v1.2.3\ntime zones 20") {
		t.Errorf("the binary says %q, %v", out, err)
	}
	checkNotices(t, string(files[name+"/THIRD_PARTY_NOTICES"]), files[name+"/claimq"])
	checkSBOM(t, built.bill, files[name+"/claimq"], at)

	again := buildHere(t, at, "")
	if again.sums != built.sums {
		t.Errorf("it differs when it is made again:\n%s%s", built.sums, again.sums)
	}
	if _, err := os.Stat(filepath.Join(again.dir, "SHA256SUMS.sig")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a key there is a signature: %v", err)
	}
}

// checkNotices looks for each module that the binary itself lists.
func checkNotices(t *testing.T, notices string, binary []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claimq")
	if err := os.WriteFile(path, binary, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := 0
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == "dep" {
			modules++
			if !strings.Contains(notices, "\n"+fields[1]+" "+fields[2]+"\n") {
				t.Errorf("there is no notice of %s %s", fields[1], fields[2])
			}
		}
	}
	if modules < 20 || !strings.Contains(notices, "The Go Authors") || !strings.Contains(notices, "Mozilla Public License") {
		t.Errorf("notices of %d modules:\n%.2000s", modules, notices)
	}
	for name, l := range pageLibraries {
		_, notice, ok := strings.Cut(notices, "\n"+name+" "+l.version+"\nhttps://www.npmjs.com/")
		if !ok || !strings.Contains(notice[:min(len(notice), 600)], l.says) {
			t.Errorf("there is no notice of %s %s", name, l.version)
		}
	}
	if strings.Contains(notices, "/pkg/mod/") {
		t.Error("the notices tell of the builder's folders")
	}
}

// Mistakes are refused with their reason before anything is built: in the folder of this
// package nothing could be.
func TestBuild_Mistakes(t *testing.T) {
	const epoch = "1"
	for _, c := range []struct {
		args        []string
		epoch, want string
	}{
		{[]string{"--sign-key", "none"}, epoch, "ssh-keygen -l -f none"},
		{[]string{"--sign-key", "main.go"}, epoch, "ssh-keygen -l -f main.go"},
		{[]string{"--sign-key", makeKey(t, "rsa")}, epoch, "it must be an Ed25519 key"},
		{[]string{"--version", "../x"}, epoch, `version "../x": it must be`},
		{[]string{"--version", "0.1.0"}, epoch, `version "0.1.0": it must begin with v`},
		{[]string{"--target", "linux"}, epoch, `target "linux": it must be OS/ARCHITECTURE`},
		{[]string{"--target", "plan9/mips"}, epoch, "unsupported GOOS/GOARCH pair plan9/mips"},
		{[]string{"--colour"}, epoch, "unknown flag: --colour"},
		{nil, "yesterday", `SOURCE_DATE_EPOCH is "yesterday"`},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		if err := run(t.Context(), append(c.args, "--out", t.TempDir())); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %s: %v, want %q", c.args, c.epoch, err, c.want)
		}
	}
}
