package server

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// New keys in the file are used. Invalid content changes nothing and is reported once. No log line has a key.
func TestJoinKeyFile(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("f", 32), strings.Repeat("s", 32)
	path := filepath.Join(t.TempDir(), "join.key")
	put := func(lines ...string) {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(first)
	var log bytes.Buffer
	f, err := openJoinKeys(path, hclog.New(&hclog.LoggerOptions{Output: &log}))
	if err != nil {
		t.Fatal(err)
	}
	f.check = func(keys [][]byte) error {
		if len(keys) == 3 {
			return errors.New("three are too many")
		}
		return nil
	}
	for _, step := range []struct {
		lines []string
		keys  string
		says  string // "" = nothing
	}{
		{[]string{first}, first, ""},
		{[]string{"# the same", first}, first, ""},
		{[]string{first, second}, first + "|" + second, "new join keys: keys=2 shows_one=true takes_none=false"},
		{[]string{first, "short"}, first + "|" + second, "the keys before stay in use"},
		{[]string{first, "short"}, first + "|" + second, ""},
		{[]string{first, second, "none"}, first + "|" + second, "three are too many"},
		{[]string{"none", second}, "|" + second, "new join keys: keys=2 shows_one=false takes_none=true"},
	} {
		log.Reset()
		put(step.lines...)
		f.look(time.Now())
		if got := string(bytes.Join(f.keys(), []byte("|"))); got != step.keys {
			t.Errorf("after %q the keys are %q", step.lines, got)
		}
		if said := log.String(); !strings.Contains(said, step.says) || step.says == "" && said != "" {
			t.Errorf("after %q the log says %q, want %q", step.lines, said, step.says)
		}
		if said := log.String(); strings.Contains(said, first) || strings.Contains(said, second) || strings.Contains(said, "short") {
			t.Errorf("the log tells a key: %s", said)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f.look(time.Now()); !strings.Contains(log.String(), "no such file") {
		t.Errorf("without the file the log says %q", log.String())
	}
}

// Without the setting a node has no key. With an invalid file it does not start.
func TestJoinKeyFile_open(t *testing.T) {
	t.Parallel()
	f, err := openJoinKeys("", hclog.NewNullLogger())
	if err != nil || f.keys() != nil {
		t.Errorf("without a file: %q, %v", f.keys(), err)
	}
	f.look(time.Now())
	if _, err := openJoinKeys("/does/not/exist", hclog.NewNullLogger()); term.ExitCode(err) != term.ExitUsage {
		t.Errorf("a file that is not there: %v", err)
	}
}
