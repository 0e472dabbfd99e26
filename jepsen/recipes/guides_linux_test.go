package recipes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/internal/procs"
)

// stays matches commands that keep running, in a separate terminal.
var stays = regexp.MustCompile(`^(claimq (dev|work|server)|go run) ?`)

// reader types what a guide says, in a clone of the repository.
type reader struct {
	t    *testing.T
	n    *network
	dir  string // of the clone
	page string
	runs []*running
}

// Every command of the guides does what its page says, in order, on a separate network;
// TestREADME types those of getting-started. There are directives that readers do not see:
// `interrupt COMMAND` is Ctrl-C for the last command with that beginning, and `save PATH`
// writes the next block of Go to a file. Needs root.
func TestGuides(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "claimq")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "../..", clone).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bin := filepath.Join(clone, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := procs.Build(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"producers", "workers", "protocol", "recipes", "troubleshooting"} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(clone, "claimq-data")); err != nil {
				t.Fatal(err)
			}
			runGuide(t, "../../docs/"+name+".md", newNetwork(t), clone)
		})
	}
}

// runGuide types the commands of a page in a clone that has been built.
func runGuide(t *testing.T, path string, n *network, clone string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	steps := parsePage(string(text))
	if len(steps) < 5 {
		t.Fatalf("found only %d commands", len(steps))
	}
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	r := &reader{t: t, n: n, dir: clone, page: string(text)}
	setup := "export PATH=$PWD/bin:$PATH LC_ALL=C\nexport -p >.exported"
	if out, err := r.n.shell(ctx, r.dir, setup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	printed := make([]string, len(steps))
	for i := range steps {
		s := &steps[i]
		began := time.Now()
		out, errRun := r.take(ctx, s)
		t.Logf("%4d %6.1f s  $ %.60s", s.line, time.Since(began).Seconds(), s.command)
		printed[i] = out
		if s.hidden && errRun != nil {
			t.Fatalf("%s:%d: %s: %v\n%s", path, s.line, s.command, errRun, out)
		}
		if !s.hidden && !*update && !s.prints(out) {
			t.Fatalf("%s:%d: %s (%v)\n-page +printed\n%s\n%s", path, s.line, s.command, errRun, cmp.Diff(plain(s.printed), plain(out)), out)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(replace(string(text), steps, printed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// take types a command.
func (r *reader) take(ctx context.Context, s *step) (string, error) {
	verb, rest, _ := strings.Cut(s.command, " ")
	switch {
	case s.hidden && verb == "interrupt":
		return r.interrupt(rest)
	case s.hidden && verb == "save":
		return "", r.save(rest, s.line)
	}
	timeout := lookTimeout
	if *update {
		timeout = updateTimeout
	}
	if stays.MatchString(s.command) {
		if strings.HasPrefix(s.command, "go run ") {
			timeout = buildTimeout
		}
		run := start(r.t, r.shell(context.Background(), "exec "+s.command))
		run.until(timeout, s.prints)
		r.runs = append(r.runs, run)
		return run.printed(), nil
	}
	deadline := time.After(timeout)
	for {
		var out bytes.Buffer
		cmd := r.shell(ctx, s.command+"\nexport -p >.exported\n")
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if s.hidden || s.prints(out.String()) || !looks.MatchString(s.command) || strings.Contains(s.command, " -d ") {
			return out.String(), err
		}
		select {
		case <-deadline:
			return out.String(), err
		case <-ctx.Done():
			return out.String(), err
		case <-time.After(lookPause):
		}
	}
}

// shell returns a command with the variables exported so far.
func (r *reader) shell(ctx context.Context, script string) *exec.Cmd {
	return r.n.shell(ctx, r.dir, ". ./.exported\n"+script)
}

// interrupt presses Ctrl-C in the terminal of the last command that begins with prefix. It
// returns that command's whole output.
func (r *reader) interrupt(prefix string) (string, error) {
	for i := len(r.runs) - 1; i >= 0; i-- {
		if run := r.runs[i]; strings.Contains(run.cmd.Args[len(run.cmd.Args)-1], "exec "+prefix) {
			run.interrupt()
			return run.printed(), nil
		}
	}
	return "", fmt.Errorf("no command runs that begins with %q", prefix)
}

// save writes the block of Go below the line to a file.
func (r *reader) save(name string, line int) error {
	below := strings.Join(strings.Split(r.page, "\n")[line:], "\n")
	found := blocks(below, "go")
	if len(found) == 0 {
		return fmt.Errorf("there is no block of Go for %s", name)
	}
	return writeNew(filepath.Join(r.dir, name), found[0])
}
