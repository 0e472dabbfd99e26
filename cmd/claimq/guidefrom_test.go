package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The commands in the guides for users of other systems run unchanged against a new cluster and print what the guides
// show.
func TestGuide_From(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{"from-redis.md": 6, "from-sqs.md": 5} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../docs/" + page)
			if err != nil {
				t.Fatal(err)
			}
			commands := guideCommands(string(text))
			if len(commands) < least {
				t.Fatalf("found only %d commands", len(commands))
			}
			d := startDev(t, "--nodes", "1")
			dir := t.TempDir()
			self, err := filepath.Abs(os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(self, filepath.Join(dir, "claimq")); err != nil {
				t.Fatal(err)
			}
			environ := append(os.Environ(), beClaimq+"=1", "CLAIMQ_ENDPOINTS="+d.url(0), "PATH="+dir+":"+os.Getenv("PATH"))
			run := func(line string) string {
				cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, ":7400", fmt.Sprintf(":%d", d.port)))
				cmd.Dir, cmd.Env = dir, environ
				out, _ := cmd.CombinedOutput() // some are refused, as the guide shows
				return string(out)
			}
			t.Cleanup(func() { run("[ ! -f work.pid ] || kill $(cat work.pid)") }) // in case the guide did not reach that point
			for i := range commands {
				c := &commands[i]
				if out := run(c.command); !c.prints(out) {
					t.Fatalf("docs/%s:%d: %s\n-guide +printed\n%s", page, c.line, c.command, cmp.Diff(strings.Join(c.printed, "\n"), out))
				}
			}
		})
	}
}
