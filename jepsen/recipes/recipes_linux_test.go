package recipes

import (
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pages are those whose commands run on separate machines, in this order: the first forms the cluster of the second.
var pages = []string{"../../docs/production.md", "../../docs/operations.md"}

// update writes the commands' output into the pages, except where they have "...".
var update = flag.Bool("update", false, "write what the commands print into the pages")

// looks are commands that only read: they are repeated until they print what the page
// shows, because a cluster takes a moment to apply changes.
var looks = regexp.MustCompile(`^(CLAIMQ_API_KEY=\$\([^)]*\) )?(claimq (cluster (status|hash)|get|list|stats|types|workers|events|why|steps|config|doctor)|curl |ls |journalctl |systemctl is-active)`)

const (
	// lookTimeout bounds the time until a look shows what the page shows.
	lookTimeout = 45 * time.Second
	// updateTimeout is the same when the page will be written.
	updateTimeout = 4 * time.Second
	lookPause     = 200 * time.Millisecond
	pageTimeout   = 10 * time.Minute
)

// Every command of docs/production.md and docs/operations.md does what the page says, in order, on separate
// machines. Needs root.
func TestOperations(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	l := newLab(t)
	for _, page := range pages {
		l.follow(ctx, t, page)
	}
}

// follow takes the steps of a page.
func (l *lab) follow(ctx context.Context, t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	steps := parsePage(string(text))
	if len(steps) < 15 {
		t.Fatalf("%s: found only %d commands", page, len(steps))
	}
	printed := make([]string, len(steps))
	for i := range steps {
		s := &steps[i]
		began := time.Now()
		out, errRun := l.take(ctx, s)
		t.Logf("%s:%d %6.1f s  %s$ %.60s", page, s.line, time.Since(began).Seconds(), s.machine, s.command)
		printed[i] = out
		if s.hidden && errRun != nil {
			t.Fatalf("%s:%d: %s: %v\n%s", page, s.line, s.command, errRun, out)
		}
		if !s.hidden && !*update && !s.prints(out) {
			t.Fatalf("%s:%d: %s (%v)\n-page +printed\n%s\n%s", page, s.line, s.command, errRun, cmp.Diff(plain(s.printed), plain(out)), out)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(replace(string(text), steps, printed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// take runs a step.
func (l *lab) take(ctx context.Context, s *step) (string, error) {
	timeout := lookTimeout
	if *update {
		timeout = updateTimeout
	}
	deadline := time.After(timeout)
	for {
		out, err := l.run(ctx, s.machine, s.command)
		if s.hidden || s.prints(out) || !looks.MatchString(s.command) {
			return out, err
		}
		select {
		case <-deadline:
			return out, err
		case <-ctx.Done():
			return out, err
		case <-time.After(lookPause):
		}
	}
}

// replace returns the page with the printed output.
func replace(page string, steps []step, printed []string) string {
	lines := strings.Split(page, "\n")
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		if s.hidden || s.prints(printed[i]) {
			continue
		}
		first := s.line + strings.Count(s.command, "\n") // the line after the command
		var now []string
		if out := strings.TrimRight(printed[i], "\n"); out != "" {
			for line := range strings.SplitSeq(out, "\n") {
				now = append(now, strings.TrimRight(line, " "))
			}
		}
		lines = append(lines[:first:first], append(now, lines[s.last:]...)...)
	}
	return strings.Join(lines, "\n")
}
