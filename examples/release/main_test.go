package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds a test that runs processes.
const patience = 3 * time.Minute

// The program and the script end as they were answered. They run one after the other, as their workers do the steps of
// all releases.
func TestRelease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := procs.Start(ctx, procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	program := func(in string, out *bytes.Buffer) error {
		c, err := client.New(client.Config{Endpoints: nodes.URLs()})
		if err != nil {
			return err
		}
		return run(ctx, c, strings.NewReader(in), out)
	}
	script := func(in string, out *bytes.Buffer) error {
		cmd := exec.CommandContext(ctx, "./release.sh")
		cmd.Env = append(os.Environ(), "CLAIMQ_ENDPOINTS="+strings.Join(nodes.URLs(), ","), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), out, os.Stderr
		return cmd.Run()
	}
	for _, test := range []struct {
		name, in, want string
		run            func(in string, out *bytes.Buffer) error
	}{
		{"program", "y\n", `^release \d+: {"passed":42}. Ship it\? \(y/n\)\ncompleted: {"shipped":true}\n$`, program},
		{"program, refused", "n\n", `^release \d+: {"passed":42}. Ship it\? \(y/n\)\nfailed: it was not approved\n$`, program},
		{"script", "y\n", `^release \d+: {"passed":42}. Ship it\? \(y/n\)\ntask \d+ has its signal\ncompleted: {"shipped":true}\n$`, script},
		{"script, refused", "n\n", `^release \d+: {"passed":42}. Ship it\? \(y/n\)\ntask \d+ has its signal\nfailed: it was not approved[^\n]*\n`, script},
	} {
		var out bytes.Buffer
		if err := test.run(test.in, &out); err != nil || !regexp.MustCompile(test.want).MatchString(out.String()) {
			t.Errorf("%s: %v, it printed\n%s", test.name, err, out.String())
		}
	}
}

// The steps that the script submits are those of the program.
func TestDescribe_isStepsJSON(t *testing.T) {
	t.Parallel()
	release, err := describe()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("steps.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range release.Steps {
		if !bytes.Contains(file, []byte(`"step": "`+s.Name+`", "task_type": "`+s.Task.TaskType+`"`)) {
			t.Errorf("steps.json has no step %s of the type %s", s.Name, s.Task.TaskType)
		}
	}
	if n := bytes.Count(file, []byte(`"step"`)); n != len(release.Steps) {
		t.Errorf("steps.json has %d steps", n)
	}
}
