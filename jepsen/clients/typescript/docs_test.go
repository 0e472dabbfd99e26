package typescript

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	readBlock  = regexp.MustCompile("(?ms)^```ts\n(.*?)^```$")
	docBlock   = regexp.MustCompile("(?ms)^```ts\n// (\\S+)\n(.*?)^```$")
	docPrinted = regexp.MustCompile(`console\.log\(.*\); // (.*)`)
	docCommand = regexp.MustCompile("(?ms)^```console\n\\$ node (.*?)\n(.*?)^```$")
)

// The programs of docs/typescript.md compile, and run against three nodes while their leader is
// down: a worker by claimq work --serve, what submits to it, tests, and one handler by hand. So
// does README's, as what submits and by hand.
func TestDocs(t *testing.T) {
	t.Parallel()
	dir := built(t)
	page, err := os.ReadFile("../../docs/typescript.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, programs := filepath.Join(dir, "tests", "docs"), filepath.Join(dir, "build", "docs")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(sources, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sources, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blocks := docBlock.FindAllStringSubmatch(string(page), -1)
	if want := strings.Count(string(page), "```ts\n"); len(blocks) == 0 || len(blocks) != want {
		t.Fatalf("%d of %d programs begin with a line that has their name", len(blocks), want)
	}
	for _, block := range blocks {
		write(block[1], block[2])
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	quick := readBlock.FindSubmatch(readme)
	if quick == nil {
		t.Fatal("README has no TypeScript")
	}
	write("readme.ts", string(quick[1]))
	write("tsconfig.json", `{"extends": "../tsconfig.json", "compilerOptions": {"rootDir": ".", "outDir": "../../build/docs"}, "include": ["."]}`)
	run(t, dir, nil, "npm", "exec", "--offline", "--", "tsc", "--project", "tests/docs")

	nodes, env := startNodes(t)
	node := runtimes(t)["node20"][0]
	worker := exec.CommandContext(t.Context(), filepath.Join(scratch, "claimq"), "work", "--serve", "--", node, "worker.js")
	worker.Dir, worker.Env, worker.Stderr = programs, append(os.Environ(), env...), t.Output()
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	})
	leader, err := nodes.WaitLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		switch name := strings.TrimSuffix(block[1], ".ts") + ".js"; {
		case strings.HasSuffix(name, ".test.js"):
			run(t, programs, env, node, "--test", name)
		case !strings.Contains(block[2], "serve("):
			want := ""
			for _, line := range docPrinted.FindAllStringSubmatch(block[2], -1) {
				want += line[1] + "\n"
			}
			if out := run(t, programs, env, node, name); out != want {
				t.Errorf("%s prints %q, and not %q", block[1], out, want)
			}
		}
	}
	if out := run(t, programs, env, node, "readme.js"); out != "" {
		t.Errorf("README's program prints %q when it submits", out)
	}
	if out := run(t, programs, append(env, "CLAIMQ_WORKER=w"), node, "readme.js", "--task", "mail", "--params", `{"to":"ada"}`); !strings.HasSuffix(out, "mail to ada\"\n") {
		t.Errorf("README's handler returns %q", out)
	}
	if out := run(t, programs, env, node, "crawl.js", "--task", "crawl", "--params", `{"pages":3}`); !strings.HasSuffix(out, "\n3\n") {
		t.Errorf("crawl.ts returns %q", out)
	}
	commands := docCommand.FindAllStringSubmatch(string(page), -1)
	if len(commands) == 0 {
		t.Error("it shows no command")
	}
	for _, command := range commands {
		if out := run(t, programs, env, "sh", "-c", node+" "+command[1]); out != command[2] {
			t.Errorf("node %s says %q, and not %q", command[1], out, command[2])
		}
	}
}
