package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// jsonRun is a command line that prints JSON.
type jsonRun struct {
	path  string // the command's path
	args  string
	stdin string
	want  int  // exit code
	mute  bool // it prints nothing; only standard error says why
}

// With --output json every command that has it prints only JSON, even for refusals and empty answers.
func TestOutputJSON(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	dir := t.TempDir()
	steps := `[{"step":"a","params":1,"task_type":"part"}]`
	runs := []jsonRun{
		{path: "submit", args: `mail {"a":1}`},
		{path: "submit", args: "mail 2"},
		{path: "submit", args: "report --steps - --finalize claim", stdin: steps}, // 3, 4
		{path: "submit", args: "--file -", stdin: "{\"params\":1}\n{\"params\":2}\nbad\n", want: term.ExitRefused},
		{path: "submit", args: "slow 1 --delay 1h --wait 1ms", want: term.ExitUnknown}, // 7
		{path: "claim", args: "--worker w1 --type mail"},
		{path: "claim", args: "--worker w1 --type nothing", want: term.ExitNone},
		{path: "extend", args: "1 --worker w1 --token 1"},
		{path: "complete", args: "1 --worker w1 --token 1 [1] --claim --type mail"},
		{path: "release", args: "2 --worker w1 --token 2"},
		{path: "claim", args: "--worker w1 --type mail --limit 5"},
		{path: "fail", args: "2 --worker w1 --token 3 --error no --permanent"},
		{path: "fail", args: "2 --worker w1 --token 4 --error no", want: term.ExitRefused},
		{path: "retry", args: "2"},
		{path: "update", args: "2 --priority 5"},
		{path: "cancel", args: "2"},
		{path: "signal", args: "7 {}", want: term.ExitRefused}, // it needs none
		{path: "get", args: "2"},
		{path: "get", args: "99", want: term.ExitNone},
		{path: "delete", args: "2"},
		{path: "list", args: "--status pending"},
		{path: "list", args: "--type nothing"},
		{path: "why", args: "7"},
		{path: "events", args: "1"},
		{path: "events", args: "--type mail"},
		{path: "steps", args: "3"},
		{path: "batch", args: "- --atomic", stdin: `{"op":"submit","params":1}{"op":"cancel","id":7}`},
		{path: "claim", args: "--worker w1 --type part"},
		{path: "steps add", args: "4 --worker w1 --token 4 --steps -", stdin: steps}, // it is there
		{path: "complete", args: "4 --worker w1 --token 4 1"},
		{path: "finalization claim", args: "3 --processor p1"},
		{path: "finalization claim", args: "3 --processor p2", want: term.ExitRefused},
		{path: "finalization extend", args: "3 --processor p1"},
		{path: "finalization release", args: "3 --processor p1"},
		{path: "finalization show", args: "3"},
		{path: "finalize", args: "3 --processor p1 1"},
		{path: "bulk retry", args: "--status failed --dry-run"},
		{path: "bulk cancel", args: "--type default"},
		{path: "bulk delete", args: "--status cancelled"},
		{path: "bulk delete", args: "--status cancelled --expect 9", want: term.ExitRefused},
		{path: "stats"},
		{path: "types"},
		{path: "failures"},
		{path: "history", args: "--type mail"},
		{path: "type show", args: "mail"},
		{path: "type set", args: "mail --pause"},
		{path: "share set", args: "mail acme --weight 300"},
		{path: "share list", args: "mail"},
		{path: "share delete", args: "mail acme"},
		{path: "defaults"},
		{path: "defaults set", args: "--lease 1m"},
		{path: "workers"},
		{path: "top", args: "--once"},
		{path: "apply", args: "- --dry-run", stdin: "types: {mail: {lease: 1m}}", want: term.ExitDiffers},
		{path: "schedule set", args: "nightly report --every 1h"},
		{path: "schedule get", args: "nightly"},
		{path: "schedule list"},
		{path: "schedule slots", args: "--every 1h"},
		{path: "schedule delete", args: "nightly"},
		{path: "schedule get", args: "nightly", want: term.ExitNone},
		{path: "cluster status"},
		{path: "cluster hash"},
		{path: "cluster upgrade"},
		{path: "cluster upgrade", args: "--finalize"},
		{path: "cluster join", args: "n9", want: term.ExitUsage, mute: true},
		{path: "cluster join", args: "n1 127.0.0.1:1", want: term.ExitRefused},
		{path: "cluster token create", args: "--expires 1h"},
		{path: "cluster token list"},
		{path: "cluster token revoke", args: "0123456789ab", want: term.ExitRefused},
		{path: "cluster remove", args: "n9", want: term.ExitRefused},
		{path: "cluster promote", args: "n9", want: term.ExitRefused},
		{path: "cluster demote", args: "n1", want: term.ExitRefused},
		{path: "cluster transfer", args: "n9", want: term.ExitRefused},
		{path: "cluster recover", args: "--data-dir " + filepath.Join(d.dir, "n1"), want: term.ExitRefused, mute: true}, // it is running
		{path: "snapshot take"},
		{path: "snapshot save", args: filepath.Join(dir, "backup")},
		{path: "snapshot inspect", args: filepath.Join(dir, "backup")},
		{path: "snapshot restore", args: filepath.Join(dir, "backup"), want: term.ExitRefused},
		{path: "doctor", args: "--data-dir " + dir},
		{path: "key generate", args: "--role reader --name n"},
		{path: "key reload"},
		{path: "key list"},
		{path: "config show", args: "--node-id n1 --data-dir d"},
		{path: "health", args: "--node-id n1 --data-dir d --http-addr " + strings.TrimPrefix(d.url(0), "http://")},
		{path: "version"},
		{path: "bench", args: "--tasks 10 --conns 1 --warm-up 1ms"},
	}
	shown := map[string]bool{}
	for _, r := range runs {
		shown[r.path] = true
		var stdout, stderr bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(r.stdin), Stdout: &stdout, Stderr: &stderr, Environ: []string{"CLAIMQ_ENDPOINTS=" + d.url(0)}, Width: 80}
		line := strings.TrimSpace(r.path + " " + r.args)
		if code := run(t.Context(), a, append(strings.Fields(line), "--output", "json")); code != r.want {
			t.Errorf("claimq %s: exit code %d, want %d: %s", line, code, r.want, stderr.String())
		}
		if n, err := jsonValues(&stdout); err != nil || (n == 0) != r.mute {
			t.Errorf("claimq %s prints %d JSON values, and then %v: %s", line, n, err, stderr.String())
		}
	}
	term.EachCommand(newTree(), func(cmd *cobra.Command, path string) {
		has := cmd.Flags().Lookup("output") != nil
		switch path {
		case "server", "dev", "testserver", "work", "completion", "":
			if has {
				t.Errorf("claimq %s has --output after all: put it into this test", path)
			}
		default:
			if !has && !term.IsGroup(cmd) {
				t.Errorf("claimq %s has no --output", path)
			}
			if has && !shown[path] {
				t.Errorf("claimq %s --output json is not in this test", path)
			}
		}
	})
}

// jsonValues counts the JSON values in r, up to an error.
func jsonValues(r io.Reader) (n int, err error) {
	dec := json.NewDecoder(r)
	for {
		var value json.RawMessage
		if err := dec.Decode(&value); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}
