package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// machine is a Debian in a folder, which has what every Debian has, and no systemd.
type machine struct{ root string }

// patience bounds a command. An installation reads some 40 MB from Debian's mirror.
const patience = 8 * time.Minute

// run runs a command of the machine and returns what it prints.
func (m machine) run(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, append([]string{
		"unshare", "--pid", "--fork", "--kill-child", "--mount-proc=" + filepath.Join(m.root, "proc"), "chroot", m.root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
	}, args...)...)
}

// command runs a command of this machine and returns what it prints.
func command(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second // what it has started may go on
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// emptyDebian returns machines that are installed anew, without anything beyond what Debian
// requires.
func emptyDebian(t *testing.T, count int) (made []machine) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("it installs packages below a root of its own: run it as root")
	}
	archive := filepath.Join(t.TempDir(), "debian.tar")
	command(t, "mmdebstrap", "--quiet", "--variant=minbase", `--aptopt=Acquire::Retries "3"`, "bookworm", archive)
	for range count {
		m := machine{t.TempDir()}
		command(t, "tar", "-C", m.root, "--exclude=./dev/*", "-xf", archive)
		for _, name := range []string{"null", "urandom"} { // links would lead out of it
			command(t, "cp", "-a", "/dev/"+name, filepath.Join(m.root, "dev", name))
		}
		made = append(made, m)
	}
	return made
}

// manager is what installs packages of a format on a machine.
type manager struct {
	format, arch             string
	install, upgrade, remove []string // upgrade and install take a file
}

// A package installs a node that works, keeps a changed configuration in an upgrade, and leaves the
// data when it is removed.
func TestPackages(t *testing.T) {
	t.Parallel()
	built := buildHere(t, time.Unix(1_700_000_000, 0).UTC(), "")
	managers := []manager{
		{"deb", runtime.GOARCH, []string{"dpkg", "-i"}, []string{"dpkg", "--force-confold", "-i"}, []string{"dpkg", "-P", "claimq"}},
		{"rpm", rpmArch[runtime.GOARCH], []string{"rpm", "-i", "--nodeps"}, []string{"rpm", "-U", "--nodeps"}, []string{"rpm", "-e", "claimq"}},
	}
	for i, m := range emptyDebian(t, len(managers)) {
		t.Run(managers[i].format, func(t *testing.T) { managers[i].check(t, m, &built) })
	}
}

func (p *manager) check(t *testing.T, m machine, built *release) {
	do := func(args []string, files ...string) {
		t.Helper()
		if p.format == "rpm" { // it is no part of that machine, and works on it from outside
			command(t, slices.Concat(args[:1], []string{"--root", m.root}, args[1:], files)...)
			return
		}
		for _, file := range files {
			command(t, "cp", file, filepath.Join(m.root, "tmp"))
			args = slices.Concat(args, []string{"/tmp/" + filepath.Base(file)})
		}
		m.run(t, args...)
	}
	do(p.install, p.file(t, built.dir))
	if out := m.run(t, "claimq", "version"); !strings.HasPrefix(out, "claimq v1.2.3\n") {
		t.Errorf("the binary says %q", out)
	}
	owners := []string{"2750 root:claimq /etc/claimq", "640 root:claimq /etc/claimq/claimq.yaml", "755 root:root /usr/bin/claimq"}
	stat := func() string {
		return m.run(t, "stat", "-c", "%a %U:%G %n", "/etc/claimq", "/etc/claimq/claimq.yaml", "/usr/bin/claimq")
	}
	if got, want := stat(), strings.Join(owners, "\n")+"\n"; got != want {
		t.Errorf("it installs\n%swant\n%s", got, want)
	}
	for _, name := range []string{"systemd/system/claimq.service", "systemd/system/claimq-work@.service", "sysusers.d/claimq.conf"} {
		from := strings.TrimPrefix(name, "systemd/system/")
		if from == "sysusers.d/claimq.conf" {
			from = "claimq.sysusers"
		}
		if string(readFile(t, m.root, "usr/lib", name)) != string(readFile(t, "../../../deploy/systemd", from)) {
			t.Errorf("/usr/lib/%s is not that of this version", name)
		}
	}
	if out := m.run(t, "runuser", "-u", "claimq", "--", "claimq", "config", "show", "--config", "/etc/claimq/claimq.yaml"); !strings.Contains(out, "n1.example.org") {
		t.Errorf("the user of the service reads of the configuration %q", out)
	}
	if out := m.run(t, "runuser", "-u", "claimq", "--", "claimq", "bench", "--nodes", "3", "--conns", "4", "--tasks", "200", "--warm-up", "0s"); !strings.Contains(out, "done 200, doubled 0, lost 0") {
		t.Errorf("three nodes do\n%s", out)
	}

	m.run(t, "sh", "-c", "echo '# ours' >> /etc/claimq/claimq.yaml && install -d -o claimq /var/lib/claimq && touch /var/lib/claimq/data")
	do(p.upgrade, p.file(t, p.next(t, built)))
	if got, want := stat(), strings.Join(owners, "\n")+"\n"; got != want {
		t.Errorf("an upgrade installs\n%swant\n%s", got, want)
	}
	if !strings.HasSuffix(string(readFile(t, m.root, "etc/claimq/claimq.yaml")), "# ours\n") {
		t.Error("an upgrade replaces a changed configuration")
	}
	do(p.remove)
	if left := m.run(t, "sh", "-c", "ls /usr/bin/claimq /usr/lib/systemd/system/claimq* /var/lib/claimq/* 2>/dev/null; id -u claimq >/dev/null && echo user"); left != "/var/lib/claimq/data\nuser\n" {
		t.Errorf("a removal leaves %q", left)
	}
}

// file returns the package in a folder.
func (p *manager) file(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*."+p.format))
	if err != nil || len(found) != 1 || !strings.Contains(filepath.Base(found[0]), p.arch) {
		t.Fatalf("packages for %s: %q, %v", p.arch, found, err)
	}
	return found[0]
}

// next makes the packages of the next version, of the same binary.
func (p *manager) next(t *testing.T, built *release) (dir string) {
	t.Helper()
	files, _ := unpack(t, built.archive)
	o := options{root: "../../..", out: t.TempDir(), version: "v1.2.4", time: time.Unix(1_700_000_001, 0).UTC()}
	from := t.TempDir()
	for _, name := range []string{"claimq", "THIRD_PARTY_NOTICES"} {
		if err := os.WriteFile(filepath.Join(from, name), files[built.name+"/"+name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.writePackages(runtime.GOARCH, filepath.Join(from, "claimq"), filepath.Join(from, "THIRD_PARTY_NOTICES")); err != nil {
		t.Fatal(err)
	}
	return o.out
}

// Releases are newer than what was before them, for dpkg and for rpm.
func TestPackageVersion(t *testing.T) {
	t.Parallel()
	var before string
	if got := packageVersion("0e5f1da6"); got != "0~0e5f1da6" {
		t.Errorf("a commit: %s", got)
	}
	for _, c := range [][2]string{
		{"dev", "0~dev"}, {"v0.1.0-rc.1", "0.1.0~rc.1"}, {"v0.1.0", "0.1.0"}, {"v0.1.0-3-g0e5f1da6", "0.1.0+3.g0e5f1da6"}, {"v0.2.0", "0.2.0"},
	} {
		got := packageVersion(c[0])
		if got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
		if before != "" {
			command(t, "dpkg", "--compare-versions", before, "lt", got)
		}
		before = got
	}
}
