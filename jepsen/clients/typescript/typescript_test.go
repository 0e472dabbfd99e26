package typescript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// scratch is a folder that is removed behind all tests.
var scratch string

// The tests run in the folder of the client that they check, all at a time: most wait for processes more than they
// compute.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "claimq-typescript")
	if err == nil {
		err = errors.Join(os.Chdir("../../../clients/typescript"), flag.Set("test.parallel", "16"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// computing has a place for each test that runs and computes more than it waits. More of them at a time would take
// no less time.
var computing = make(chan struct{}, 2)

// computes waits for a place in computing, which the test has to its end.
func computes(t *testing.T) {
	t.Helper()
	computing <- struct{}{}
	t.Cleanup(func() { <-computing })
}

// run runs a command in dir, and returns what it printed.
func run(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	out, err := output(t.Context(), dir, env, command...)
	if err != nil {
		t.Error(err)
	}
	return out
}

func output(ctx context.Context, dir string, env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return string(out), nil
}

// tools is where tests/tools/install puts what the package is checked with, seen from here.
const tools = "tests/tools/node_modules"

var ready = sync.OnceValue(func() error {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not there: install nodejs and npm, or run .ci/tools as root: %w", name, err)
		}
	}
	_, err := output(context.Background(), ".", nil, "tests/tools/install") // it is for all tests
	return err
})

// runtimes returns the command of each runtime that the package is for.
func runtimes(t *testing.T) map[string][]string {
	t.Helper()
	if err := ready(); err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{}
	for name, pattern := range map[string]string{
		"node20": "node20*/bin/node", "node22": "node22*/bin/node", "bun": "@oven/*/bin/bun", "deno": "@deno/*/deno",
	} {
		found, err := filepath.Glob(filepath.Join(tools, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s is not in clients/typescript/%s (%v, %v): npm has none for this platform, or not all of it was installed: remove the folder", name, tools, found, err)
		}
		path, err := filepath.Abs(found[0])
		if err != nil {
			t.Fatal(err)
		}
		commands[name] = []string{path}
	}
	commands["deno"] = append(commands["deno"], "run", "--allow-all", "--no-remote")
	return commands
}

// built returns a copy of this folder in which the package and its tests are compiled. The
// other files that tests read are in the same relative places.
func built(t *testing.T) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var build = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "clients", "typescript")
	if err := copyPackage(dir); err != nil {
		return "", err
	}
	for _, name := range []string{"vectors.json", "options.json"} {
		if err := copyFile("../"+name, filepath.Join(scratch, "clients", name)); err != nil {
			return "", err
		}
	}
	if err := copyFile("../../docs/protocol.md", filepath.Join(scratch, "docs", "protocol.md")); err != nil {
		return "", err
	}
	if err := copyFile("../../examples/release/release.ts", filepath.Join(dir, "tests", "programs", "release.ts")); err != nil {
		return "", err
	}
	if err := ready(); err != nil {
		return "", err
	}
	ctx := context.Background() // it is for all tests
	if _, err := output(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--silent"); err != nil {
		return "", err
	}
	if _, err := output(ctx, dir, nil, "npm", "run", "--silent", "build"); err != nil {
		return "", err
	}
	_, err := output(ctx, dir, nil, "npm", "exec", "--offline", "--", "tsc", "--project", "tests")
	return dir, err
})

// copyPackage copies the files of this folder, without what is made of them.
func copyPackage(to string) error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return copyFile(path, filepath.Join(to, path))
		case d.Name() == "node_modules" || path == "dist" || path == "build":
			return fs.SkipDir
		}
		return nil
	})
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

var binaries = sync.OnceValues(func() ([]string, error) {
	ctx := context.Background() // as above
	claimq, err := procs.Build(ctx, scratch)
	if err != nil {
		return nil, err
	}
	faults := filepath.Join(scratch, "faults")
	_, err = output(ctx, "../faults", []string{"CGO_ENABLED=0"}, "go", "build", "-o", faults, ".")
	return []string{"CLAIMQ_BIN=" + claimq, "CLAIMQ_FAULTS=" + faults}, err
})

// environment returns what names the binaries that tests of the package start.
func environment(t *testing.T) []string {
	t.Helper()
	env, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// The package's own tests, in every runtime that it is for. That they compile is a test, too: each
// line of tests/typing_wrong.ts and typing_worker.ts that says so is refused.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	dir := built(t)
	tests, err := filepath.Glob(filepath.Join(dir, "build", "*.test.js"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("the tests are %v, %v", tests, err)
	}
	env := environment(t)
	for name, command := range runtimes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			computes(t)
			run(t, dir, env, slices.Concat(command[:1], tested[name], tests)...)
		})
	}
}

// tested has the commands with which the runtimes run tests.
var tested = map[string][]string{
	"node20": {"--test"}, "node22": {"--test"}, "bun": {"test", "--timeout=60000"}, "deno": {"test", "--allow-all", "--no-remote", "--no-check"},
}

// In each runtime, by its own transport and by fetch, a client meets every script of faults, before the other tests:
// their load could take the time that scripts allow.
func TestFaults(t *testing.T) {
	program := filepath.Join(built(t), "build", "programs", "faults.js")
	env := environment(t)
	for name, command := range runtimes(t) {
		for _, transport := range []string{"own", "fetch"} {
			t.Run(name+" "+transport, func(t *testing.T) {
				t.Parallel()
				computes(t)
				t.Log(run(t, filepath.Dir(program), env, slices.Concat(command, []string{program, transport})...))
			})
		}
	}
}

// The types of the API are those that are made of its description.
func TestAPI(t *testing.T) {
	t.Parallel()
	computes(t)
	if err := ready(); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "api.d.ts")
	run(t, ".", nil, "node", filepath.Join(tools, "openapi-typescript", "bin", "cli.js"), "../../api/openapi.yaml", "--default-non-nullable=false", "--output", made)
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("src/api.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("src/api.d.ts is not what is made of api/openapi.yaml: run npm run api in clients/typescript")
	}
}

// The package is the same bytes whenever it is built. Installed from the file into an empty
// folder it is all that is there, every runtime can import it, and users' programs compile with
// an older compiler and without the types of Node.
func TestPackage(t *testing.T) {
	t.Parallel()
	dir := built(t)
	computes(t)
	pack := func(dir string) (file string, sum [32]byte) {
		t.Helper()
		to := t.TempDir()
		run(t, dir, nil, "npm", "pack", "--silent", "--pack-destination", to)
		files, err := filepath.Glob(filepath.Join(to, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("packed %v, %v", files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return files[0], sha256.Sum256(data)
	}
	file, first := pack(dir)
	again := t.TempDir()
	if err := copyPackage(again); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(again, "node_modules")); err != nil {
		t.Fatal(err)
	}
	run(t, again, nil, "npm", "run", "--silent", "build")
	if _, second := pack(again); first != second {
		t.Error("the package has other bytes when it is built again")
	}
	empty := t.TempDir()
	for name, text := range map[string]string{
		"package.json": `{"type": "module"}`,
		"program.js": `import { Client, task } from "claimq";
import { Recorder } from "claimq/testing";
import { handle } from "claimq/worker";
handle(task("mail"), {}, () => {});
new Client().close();
new Recorder();
console.log("imported", import.meta.resolve("claimq"));
`,
		"tsconfig.json": `{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022", "lib": ["es2023", "dom", "dom.asynciterable"], "types": [], "noEmit": true}}`,
	} {
		if err := os.WriteFile(filepath.Join(empty, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, empty, nil, "npm", "install", "--silent", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", file)
	installed, err := os.ReadDir(filepath.Join(empty, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range installed {
		if name := entry.Name(); name != "claimq" && !strings.HasPrefix(name, ".") {
			t.Errorf("it brought %s with it", name)
		}
	}
	for name, command := range runtimes(t) {
		out := run(t, empty, nil, slices.Concat(command, []string{"program.js"})...)
		if !strings.Contains(out, "imported file://") || !strings.Contains(out, "node_modules/claimq/dist/index.js") {
			t.Errorf("%s says %q", name, out)
		}
	}
	if err := copyFile("tests/typing_right.ts", filepath.Join(empty, "program.ts")); err != nil {
		t.Fatal(err)
	}
	compiler, err := filepath.Abs(filepath.Join(tools, "typescript", "bin", "tsc"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, empty, nil, "node", compiler, "--project", ".")
}
