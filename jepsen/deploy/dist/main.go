// Command dist builds a release: for each target an archive of the static binary with its
// licences, and a bill of materials; for Linux also a .deb and an .rpm; and the SHA-256 sums of
// all of them with a signature. The same commit, Go and version give the same bytes.
//
//	go -C jepsen run ./deploy/dist --version v1.2.3 --out ../dist --sign-key ../release.key
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/internal/procs"
)

// allTargets lists the platforms of a release.
var allTargets = [...]string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// options say what to build.
type options struct {
	root    string // the checkout
	out     string
	version string
	targets []string
	signKey string    // of ssh-keygen; "": the sums are not signed
	time    time.Time // of all files in the archives
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{}
	fs := pflag.NewFlagSet("dist", pflag.ContinueOnError)
	fs.StringVar(&o.out, "out", "dist", "folder for the archives")
	fs.StringVar(&o.version, "version", "dev", "version, as `claimq version` is to say it")
	fs.StringSliceVar(&o.targets, "target", allTargets[:], "OS/ARCHITECTURE to build for")
	fs.StringVar(&o.signKey, "sign-key", "", "OpenSSH key, Ed25519, to sign the sums with; none: they are not signed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q: it must be the commit's time in seconds since 1970", os.Getenv("SOURCE_DATE_EPOCH"))
	}
	o.time = time.Unix(epoch, 0).UTC()
	if o.root, err = procs.Root(ctx); err != nil {
		return err
	}
	return o.build(ctx)
}

var (
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)
	bareNumber     = regexp.MustCompile(`^[0-9]+\.[0-9]`) // a release's number without its v
)

// build makes an archive, a bill of materials and, for Linux, packages for each target, and
// SHA256SUMS of all of them, which it signs if it has a key.
func (o *options) build(ctx context.Context) error {
	if !versionPattern.MatchString(o.version) {
		return fmt.Errorf("version %q: it must be letters, digits, dots, + and - alone", o.version)
	}
	if bareNumber.MatchString(o.version) {
		return fmt.Errorf("version %q: it must begin with v, as v1.2.3: packages of other versions are older than every release", o.version)
	}
	if err := o.checkTargets(ctx); err != nil {
		return err
	}
	if err := o.checkSignKey(ctx); err != nil {
		return err
	}
	if err := o.fetchLibraries(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, target := range o.targets {
		goos, arch, _ := strings.Cut(target, "/")
		made, err := o.buildTarget(ctx, goos, arch)
		if err != nil {
			return fmt.Errorf("build for %s: %w", target, err)
		}
		for _, path := range made {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), filepath.Base(path))
			fmt.Println(path)
		}
	}
	if err := os.WriteFile(filepath.Join(o.out, sumsName), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	return o.sign(ctx)
}

// checkTargets refuses targets that Go does not support, before anything is built.
func (o *options) checkTargets(ctx context.Context) error {
	for _, target := range o.targets {
		goos, arch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q: it must be OS/ARCHITECTURE", target)
		}
		if _, err := o.goTool(ctx, goos, arch, "build", "-n", "unsafe"); err != nil {
			return fmt.Errorf("target %q: %w", target, err)
		}
	}
	return nil
}

// packed lists the files in an archive, except for the binary and the notices, by their place
// in it.
var packed = [...][2]string{
	{"LICENSE", "LICENSE"},
	{"README.md", "README.md"},
	{"CHANGELOG.md", "CHANGELOG.md"},
	{"SECURITY.md", "SECURITY.md"},
	{"cli.md", "docs/cli.md"},
	{"systemd/claimq-work@.service", "deploy/systemd/claimq-work@.service"},
	{"systemd/claimq.service", "deploy/systemd/claimq.service"},
	{"systemd/claimq.sysusers", "deploy/systemd/claimq.sysusers"},
	{"systemd/claimq.yaml", "deploy/systemd/claimq.yaml"},
}

// buildTarget returns the paths of the archive, of the bill of materials and of the packages.
func (o *options) buildTarget(ctx context.Context, goos, arch string) ([]string, error) {
	dir, err := os.MkdirTemp("", "claimq-dist")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers in a temporary folder do no harm
	binary := filepath.Join(dir, "claimq")
	// Without the state of the checkout, which a source tarball lacks.
	if _, err := o.goTool(ctx, goos, arch, "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+o.version, "-o", binary, "./cmd/claimq"); err != nil {
		return nil, err
	}
	notices, err := o.notices(ctx, goos, arch)
	if err != nil {
		return nil, err
	}
	libraries, err := o.libraries()
	if err != nil {
		return nil, err
	}
	bill, err := sbom(binary, libraries, o.version, o.time)
	if err != nil {
		return nil, err
	}
	files := []file{{name: "claimq", path: binary, mode: 0o755}, {name: "THIRD_PARTY_NOTICES", content: notices, mode: 0o644}}
	for _, p := range packed {
		files = append(files, file{name: p[0], path: filepath.Join(o.root, filepath.FromSlash(p[1])), mode: 0o644})
	}
	name := fmt.Sprintf("claimq_%s_%s_%s", o.version, goos, arch)
	path, billPath := filepath.Join(o.out, name+".tar.gz"), filepath.Join(o.out, name+".cdx.json")
	if err := os.WriteFile(billPath, bill, 0o644); err != nil {
		return nil, err
	}
	if err := writeArchive(path, name, files, o.time); err != nil {
		return nil, err
	}
	made := []string{path, billPath}
	if goos == "linux" {
		noticesPath := filepath.Join(dir, "THIRD_PARTY_NOTICES")
		if err := os.WriteFile(noticesPath, notices, 0o600); err != nil {
			return nil, err
		}
		packages, err := o.writePackages(arch, binary, noticesPath)
		if err != nil {
			return nil, err
		}
		made = append(made, packages...)
	}
	return made, nil
}

// goTool runs the go command for a target and returns its output.
func (o *options) goTool(ctx context.Context, goos, arch string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = o.root
	// The baseline of each architecture, regardless of the builder's machine.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+goos, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return out, nil
}
