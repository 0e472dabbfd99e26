package releases

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// checkout is the folder of the repository.
const checkout = "../.."

// A release's binary is built from its commit, whatever the checkout has meanwhile.
func TestRelease_Build(t *testing.T) {
	t.Parallel()
	binary, err := Release{"v0.0.1", "HEAD"}.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "claimq v0.0.1\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A shallow clone is used without the releases that it lacks; any other checkout must have them all.
func TestInCheckout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := run(t.Context(), slices.Concat([]string{"git", "-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	git("init", "--quiet", "whole")
	var all []Release
	for _, version := range []string{"v1", "v2"} {
		git("-C", "whole", "commit", "--quiet", "--allow-empty", "--message", version)
		all = append(all, Release{version, git("-C", "whole", "rev-parse", "HEAD")})
	}
	git("clone", "--quiet", "--depth", "1", "file://"+dir+"/whole", "shallow")
	for clone, want := range map[string][]Release{"whole": all, "shallow": all[1:]} {
		if got, err := InCheckout(t.Context(), filepath.Join(dir, clone), all); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", clone, got, err, want)
		}
	}
	unknown := []Release{{"v3", strings.Repeat("3", 40)}}
	if got, err := InCheckout(t.Context(), filepath.Join(dir, "whole"), unknown); err == nil {
		t.Errorf("%v of a commit that the checkout does not have", got)
	}
}

// Files that a release has are reported if they are changed or gone, also before a commit; new ones are not.
func TestRelease_Changed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if _, err := run(t.Context(), slices.Concat([]string{"git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args)...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	if err := os.Mkdir(filepath.Join(root, "golden"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"golden/changed", "golden/gone", "golden/kept", "golden/moved", "other"} {
		write(name, "as it was: "+name)
	}
	git("add", ".")
	git("commit", "--quiet", "--message", "a release")
	git("tag", "v1")
	git("mv", "golden/moved", "golden/new")
	write("golden/new2", "new")
	git("add", ".")
	git("commit", "--quiet", "--message", "later")
	write("golden/changed", "otherwise")
	write("other", "otherwise")
	if err := os.Remove(filepath.Join(root, "golden/gone")); err != nil {
		t.Fatal(err)
	}
	got, err := Release{"v1", "v1"}.Changed(t.Context(), root, "golden")
	if want := []string{"golden/changed", "golden/gone", "golden/moved"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// What a release has written stays readable: its golden files are never changed.
func TestGolden_frozen(t *testing.T) {
	t.Parallel()
	found, err := InCheckout(t.Context(), checkout, All)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		changed, err := r.Changed(t.Context(), checkout, "fsm/testdata/golden")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range changed {
			t.Errorf("%s is not as %s has it; docs/formats.md says how formats change", file, r.Version)
		}
	}
}

// Every file that names the version has the newest one of CHANGELOG.md, which may not be released yet. Older ones are in
// All, and so is the newest once it is released, in the next commit.
func TestVersions(t *testing.T) {
	t.Parallel()
	versions := regexp.MustCompile(`(?m)^## ([0-9]+\.[0-9]+\.[0-9]+) - (20[0-9]{2}-[0-9]{2}-[0-9]{2}|unreleased)$`).FindAllStringSubmatch(read(t, "CHANGELOG.md"), -1)
	if len(versions) == 0 {
		t.Fatal("CHANGELOG.md has no version")
	}
	want := versions[0][1]
	for i, v := range versions {
		known := slices.ContainsFunc(All, func(r Release) bool { return r.Version == "v"+v[1] })
		switch {
		case v[2] == "unreleased" && (known || i > 0):
			t.Errorf("CHANGELOG.md has %s as unreleased", v[1])
		case i > 0 && !known:
			t.Errorf("All does not have the release %s", v[1])
		}
	}
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/helm/claimq/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != "v"+want {
		t.Errorf("the chart runs the image %s, want v%s", chart.AppVersion, want)
	}
	var lock, npm struct {
		Version  string
		Packages map[string]struct{ Version string }
	}
	for file, into := range map[string]any{"clients/typescript/package.json": &npm, "clients/typescript/package-lock.json": &lock} {
		if err := json.Unmarshal([]byte(read(t, file)), into); err != nil {
			t.Fatal(err)
		}
	}
	python := regexp.MustCompile(`(?m)^version = "(.*)"$`).FindStringSubmatch(read(t, "clients/python/pyproject.toml"))
	for file, got := range map[string]string{
		"deploy/helm/claimq/Chart.yaml": chart.Version, "clients/python/pyproject.toml": python[1], "clients/typescript/package.json": npm.Version,
		"clients/typescript/package-lock.json": lock.Version, "packages of clients/typescript/package-lock.json": lock.Packages[""].Version,
	} {
		if got != want {
			t.Errorf("%s has version %s, want %s", file, got, want)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(checkout, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
