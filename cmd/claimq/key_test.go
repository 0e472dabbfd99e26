package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/cmd/claimq/server"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

// The output of key generate fits into a server's file unchanged, and its hash belongs to the key.
func TestKeyGenerate(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := run(t.Context(), a, []string{"key", "generate", "--role", "worker", "--name", "mailer", "--rate", "600", "--type", "mail", "--type", "sms:eu", "--expires-at", "2999-01-31T12:00:00+01:00", "--address", "10.0.0.0/8,::ffff:192.0.2.7"}); code != term.ExitDone {
		t.Fatalf("%d %s", code, errs.String())
	}
	key := regexp.MustCompile(`(?m)^  (claimq_[a-z2-7]{52})$`).FindStringSubmatch(out.String())
	if key == nil {
		t.Fatalf("no key in:\n%s", out.String())
	}
	file := filepath.Join(t.TempDir(), "claimq.yaml")
	yaml := "node_id: n1\ndata_dir: d\n" + out.String()[strings.Index(out.String(), "keys:\n"):]
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	loaded, err := config.LoadServer(file, nil, flags)
	keys := server.KeysOf(&loaded)
	if err != nil || len(keys) != 1 || door.CheckKeys(keys) != nil {
		t.Fatalf("%v, %v, from:\n%s", keys, err, yaml)
	}
	sum := sha256.Sum256([]byte(key[1]))
	k := keys[0]
	if k.SHA256 != hex.EncodeToString(sum[:]) || k.Name != "mailer" || k.Role != "worker" || *k.RateLimitPerMinute != 600 || strings.Join(k.TaskTypes, " ") != "mail sms:eu" || k.Field != "keys[0]" ||
		!k.ExpiresAt.Equal(time.Date(2999, time.January, 31, 11, 0, 0, 0, time.UTC)) || fmt.Sprint(k.Addresses) != "[10.0.0.0/8 192.0.2.7/32]" {
		t.Errorf("read as %+v", k)
	}
	if other := generate(t, "--role", "reader", "--name", "a"); other.Key == key[1] || other.RateLimitPerMinute != nil || other.TaskTypes != nil || other.ExpiresAt != "" {
		t.Errorf("another: %+v", other)
	}
	if both := generate(t, "--role", "producer", "--role", "worker", "--name", "a"); both.Role != "" || strings.Join(both.Roles, " ") != "producer worker" || !strings.Contains(both.Text(), "    roles: [\"producer\", \"worker\"]\n") {
		t.Errorf("of two roles: %+v", both)
	}
	for _, c := range []struct {
		args  string
		want  int64 // -1: not printed
		means string
	}{
		{"--role worker", 0, "any number of requests"},
		{"--role producer", 0, "any number of requests"},
		{"--role reader,worker", 0, "any number of requests"},
		{"--role worker --rate 1", 1, "1 request a minute at each node"},
		{"--role producer --rate 6000", 6000, "6,000 requests a minute at each node"},
		{"--role reader", -1, "100 requests a minute"},
		{"--role operator", -1, "100 requests a minute"},
		{"--role operator --rate 0", 0, "any number of requests"},
	} {
		k := generate(t, strings.Fields("--name a "+c.args)...)
		got := int64(-1)
		if k.RateLimitPerMinute != nil {
			got = *k.RateLimitPerMinute
		}
		if text := k.Text(); got != c.want || !strings.Contains(text, c.means) || strings.Contains(text, "rate_limit_per_minute: ") != (got >= 0) {
			t.Errorf("%s: the rate is %d, want %d, and %q:\n%s", c.args, got, c.want, c.means, text)
		}
	}
	before := time.Now().Add(90 * time.Minute).Truncate(time.Second)
	at, err := time.Parse(time.RFC3339, generate(t, "--role", "reader", "--name", "a", "--expires-in", "90m").ExpiresAt)
	if after := time.Now().Add(90 * time.Minute); err != nil || at.Before(before) || at.After(after) {
		t.Errorf("in 90 minutes, from %v to %v: %v, %v", before, after, at, err)
	}
}

func TestKeyGenerate_Usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"--role", "worker"},
		{"--name", "a"},
		{"--role", "king", "--name", "a"},
		{"--role", "worker,worker", "--name", "a"},
		{"--role", "worker", "--role", "king", "--name", "a"},
		{"--role", "worker", "--name", "a b"},
		{"--role", "worker", "--name", "a", "--rate", "-1"},
		{"--role", "worker", "--name", "a", "--type", "no type"},
		{"--role", "worker", "--name", "a", "--output", "yaml"},
		{"--role", "worker", "--name", "a", "--address", "host"},
		{"--role", "worker", "--name", "a", "--expires-in", "0s"},
		{"--role", "worker", "--name", "a", "--expires-in", "-1h"},
		{"--role", "worker", "--name", "a", "--expires-at", "2999-01-31"},
		{"--role", "worker", "--name", "a", "--expires-at", "2001-01-31T12:00:00Z"},
		{"--role", "worker", "--name", "a", "--expires-in", "1h", "--expires-at", "2999-01-31T12:00:00Z"},
	} {
		var out, errs bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
		if code := run(t.Context(), a, append([]string{"key", "generate"}, args...)); code != term.ExitUsage || out.Len() > 0 || strings.Contains(errs.String(), door.KeyPrefix) {
			t.Errorf("%v: %d %s%s", args, code, out.String(), errs.String())
		}
	}
}
