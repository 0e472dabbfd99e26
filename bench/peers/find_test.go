package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// program writes a program that prints the text, and returns its path.
func program(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := procs.WriteExecutable(path, fmt.Appendf(nil, "#!/bin/sh\necho '%s'\n", text)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFinder(t *testing.T) {
	t.Parallel()
	first, second, rabbit := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "rabbitmq_server-4.1.2", "sbin")
	own := program(t, filepath.Join(t.TempDir(), "claimq"), "claimq v0.1.0 (go1.26)")
	if err := os.Mkdir(filepath.Join(first, "beanstalkd"), 0o700); err != nil { // a folder is not a program
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(first, "nats-server"), nil, 0o600); err != nil { // neither is a file that cannot be executed
		t.Fatal(err)
	}
	beanstalk := program(t, filepath.Join(second, "beanstalkd"), "beanstalkd 1.12")
	nats := program(t, filepath.Join(second, "nats-server"), "nats-server: v2.15.2")
	server := program(t, filepath.Join(rabbit, "rabbitmq-server"), "")

	for name, c := range map[string]struct {
		dirs           []string
		only           []string
		count          int
		found, missing string
	}{
		"all": {
			[]string{first, second, rabbit},
			nil, 2000,
			"claimq v0.1.0 " + own + ", NATS JetStream 2.15.2 " + nats + ", RabbitMQ 4.1.2 " + server + ", beanstalkd 1.12 " + beanstalk, "",
		},
		"none": {
			[]string{first, filepath.Join(first, "nonexistent")},
			nil, 2000,
			"claimq v0.1.0 " + own,
			"NATS JetStream: nats-server is not installed; go install github.com/nats-io/nats-server/v2@v2.15.2\n" +
				"RabbitMQ: rabbitmq-server is not installed; apt-get install rabbitmq-server\n" +
				"beanstalkd: beanstalkd is not installed; apt-get install beanstalkd",
		},
		"one of them": {
			[]string{first, second, rabbit},
			[]string{"nats-server"},
			1,
			"claimq v0.1.0 " + own + ", NATS JetStream 2.15.2 " + nats, "",
		},
		"more than one of them can take": {
			[]string{first, second, rabbit},
			nil, 2001,
			"claimq v0.1.0 " + own + ", NATS JetStream 2.15.2 " + nats + ", beanstalkd 1.12 " + beanstalk,
			"RabbitMQ: it is measured with at most 2000 producers",
		},
	} {
		found, missing, err := finder{dirs: c.dirs, only: c.only, count: c.count}.all(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range found {
			got = append(got, s.name+" "+s.release+" "+s.path)
		}
		if strings.Join(got, ", ") != c.found || strings.Join(missing, "\n") != c.missing {
			t.Errorf("%s: found %s\nmissing %s", name, strings.Join(got, ", "), strings.Join(missing, "\n"))
		}
	}
}

// Some programs exist but cannot be measured.
func TestFinder_refuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := program(t, filepath.Join(t.TempDir(), "claimq"), "claimq dev")
	nats := program(t, filepath.Join(dir, "nats-server"), "nats-server: v2.9.10")
	beanstalk := program(t, filepath.Join(dir, "beanstalkd"), "no word of it")
	server := program(t, filepath.Join(dir, "rabbitmq-server"), "")
	_, missing, err := finder{dirs: []string{dir}}.all(t.Context(), own)
	want := []string{
		"NATS JetStream: " + nats + " is 2.9.10, which cannot sync before it confirms: 2.10 and later can; go install github.com/nats-io/nats-server/v2@v2.15.2",
		"RabbitMQ: " + server + " is in no folder that is named for its version; apt-get install rabbitmq-server",
		"beanstalkd: " + beanstalk + " -v says no version: no word of it\n; apt-get install beanstalkd",
	}
	if err != nil || strings.Join(missing, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, missing %q\nwant %q", err, missing, want)
	}
	if _, _, err := (finder{}).all(t.Context(), filepath.Join(dir, "claimq")); err == nil || !strings.HasSuffix(err.Error(), "; make build") {
		t.Errorf("without claimq: %v", err)
	}
}
