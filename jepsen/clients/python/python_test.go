package python

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// interpreter is Debian's: it alone sees what .ci/tools installs.
const interpreter = "/usr/bin/python3"

// need fails the test unless Debian's Python has a module.
func need(t *testing.T, module, pkg string) {
	t.Helper()
	if out, err := exec.Command(interpreter, "-c", "import "+module).CombinedOutput(); err != nil {
		t.Fatalf("%s has no %s: install %s, or run .ci/tools as root: %v\n%s", interpreter, module, pkg, err, out)
	}
}

// run runs a command in dir, and returns what it printed.
func run(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"PYTHONDONTWRITEBYTECODE=1"}, env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// It runs before the others: their load could take the time that scripts of faults allow.
func TestPytest(t *testing.T) {
	need(t, "pytest", "python3-pytest")
	dir := t.TempDir()
	claimq, err := procs.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	faults := filepath.Join(dir, "faults")
	run(t, "../faults", []string{"CGO_ENABLED=0"}, "go", "build", "-o", faults, ".")
	env := []string{"CLAIMQ_BIN=" + claimq, "CLAIMQ_FAULTS=" + faults, "PYTHONPATH=" + absolute(t, "src")}
	run(t, ".", env, interpreter, "-X", "dev", "-m", "pytest", "-q", "tests")
}

// The packages are the same bytes whenever they are built, and an environment that has nothing
// but the wheel can import it.
func TestPackages(t *testing.T) {
	t.Parallel()
	need(t, "build", "python3-build")
	need(t, "hatchling", "python3-hatchling")
	build := func() (dir string, sums map[string][32]byte) {
		dir = t.TempDir()
		env := []string{"SOURCE_DATE_EPOCH=1577836800"}
		run(t, ".", env, interpreter, "-m", "build", "--no-isolation", "--skip-dependency-check", "--wheel", "--sdist", "--outdir", dir)
		sums = map[string][32]byte{}
		files, err := filepath.Glob(dir + "/*")
		if err != nil || len(files) != 2 {
			t.Fatalf("built %v, %v", files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sums[filepath.Base(file)] = sha256.Sum256(data)
		}
		return dir, sums
	}
	dir, first := build()
	_, second := build()
	for name, sum := range first {
		if second[name] != sum {
			t.Errorf("%s has other bytes when it is built again", name)
		}
		if strings.HasSuffix(name, ".whl") {
			install(t, filepath.Join(dir, name))
		}
	}
}

// install makes an environment with the wheel alone, and imports it there.
func install(t *testing.T, wheel string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "env")
	run(t, ".", nil, interpreter, "-m", "venv", "--without-pip", dir)
	library, err := filepath.Glob(dir + "/lib/python3*/site-packages")
	if err != nil || len(library) != 1 {
		t.Fatalf("the environment has %v, %v", library, err)
	}
	run(t, ".", nil, interpreter, "-m", "zipfile", "-e", wheel, library[0])
	out := run(t, dir, []string{"PYTHONPATH="}, dir+"/bin/python", "-c",
		"import claimq, importlib.metadata as m; print(claimq.__file__, m.entry_points(group='pytest11')['claimq'].load.__self__.value)")
	if !bytes.Contains([]byte(out), []byte(library[0])) || !strings.Contains(out, "claimq.pytest_plugin") {
		t.Errorf("the wheel was installed as %s", out)
	}
	if _, err := os.Stat(filepath.Join(library[0], "claimq", "py.typed")); err != nil {
		t.Error(err)
	}
}
