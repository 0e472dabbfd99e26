package recipes

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// buildTimeout bounds builds: on a machine that has never built claimq they take minutes.
const buildTimeout = 8 * time.Minute

// README's quick start, typed literally, in a fresh clone: the leader is killed while a worker
// has the task, and the task is done, once. Its last wait is at most a minute. Then README's
// program in Go, and in the same folder, with the files that README has left there, every command
// of getting-started. Needs root.
func TestREADME(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shell, program := blocks(string(text), "sh"), blocks(string(text), "go")
	if len(shell) != 2 || len(program) != 1 {
		t.Fatalf("README has %d blocks of shell and %d of Go, not those of two terminals and one program", len(shell), len(program))
	}
	_, code, _ := strings.Cut(program[0], "\n)\n")
	if n := len(regexp.MustCompile(`(?m)\S.*$`).FindAllString(code, -1)); n > 20 {
		t.Errorf("the program has %d lines, README may have 20", n)
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+source+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/claimq/claimq")
	n, dir := newNetwork(t), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*buildTimeout)
	defer cancel()

	began := time.Now()
	nodes := n.shell(context.Background(), dir, shell[0])
	nodes.Env = environ
	first := start(t, nodes)
	if !first.until(buildTimeout, says("leader: n")) {
		t.Fatalf("the first terminal shows no leader:\n%s", first.printed())
	}
	built := time.Now()
	clone := filepath.Join(dir, "claimq")
	cmd := n.shell(ctx, clone, shell[1]+"kill $!\nwait $! || true\n") // stops the worker and waits for it
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nfirst terminal:\n%s", err, out, first.printed())
	}
	t.Logf("the first terminal took %.1f s until there was a leader, the second %.1f s:\n%s", built.Sub(began).Seconds(), time.Since(built).Seconds(), out)
	if !strings.Contains(string(out), `{"TO":"WORLD"}`) || !strings.Contains(string(out), "1 completed") {
		t.Errorf("the task is not done:\n%s", out)
	}
	for _, event := range []string{"submitted", "claimed", "completed"} {
		if n := len(regexp.MustCompile(`(?m)^\d{4}-\S+ \S+ +`+event+` `).FindAllString(string(out), -1)); n != 1 {
			t.Errorf("task 1 has %d events %s:\n%s", n, event, out)
		}
	}
	followed := func(printed string) bool {
		return strings.Contains(printed, "has ended: signal: killed") && strings.Count(printed, "leader: n") >= 2
	}
	if !first.until(lookTimeout, followed) {
		t.Errorf("no leader was killed and followed:\n%s", first.printed())
	}

	if err := writeNew(filepath.Join(clone, "mail", "main.go"), program[0]); err != nil {
		t.Fatal(err)
	}
	export, _, _ := strings.Cut(shell[1], "\n")
	mail := n.shell(context.Background(), clone, export+"\nexec go run ./mail")
	mail.Env = environ
	second := start(t, mail)
	if !second.until(buildTimeout, says("mail to ada@example.org with token ")) {
		t.Fatalf("README's program prints:\n%s", second.printed())
	}
	second.interrupt()
	if !strings.Contains(second.printed(), "stopped: <nil>") {
		t.Errorf("README's program ends with:\n%s", second.printed())
	}
	first.interrupt()
	t.Run("getting-started", func(t *testing.T) { runGuide(t, "../../docs/getting-started.md", n, clone) })
}

// blocks returns the blocks of code in a language.
func blocks(page, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	return found
}

// writeNew writes a file in a folder that it creates.
func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
