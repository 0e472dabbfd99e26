package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/operate"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// showConfigOf runs `claimq config show` with a file of that content.
func showConfigOf(t *testing.T, content string, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claimq.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: environ}
	code = run(t.Context(), a, append([]string{"config", "show", "--config", path}, args...))
	return strings.ReplaceAll(out.String(), path, "FILE"), strings.ReplaceAll(errs.String(), path, "FILE"), code
}

const shownHash = "6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090"

const shownFile = "node_id: n1\nhttp_addr: 127.0.0.1:1\nmemory_limit: 1GiB\nkeys: [{name: ops, role: operator, key_sha256: " + shownHash + "}]\n"

// Each setting is shown with its origin, and no secret is shown.
func TestConfigShow(t *testing.T) {
	t.Parallel()
	environ := []string{"CLAIMQ_MEMORY_LIMIT=2GiB", "CLAIMQ_TRAIL_AGE=36h", "CLAIMQ_KEY_FILE=a-clients", "CLAIMQ_LOG_LEVE=info"}
	stdout, stderr, code := showConfigOf(t, shownFile, environ, "--data-dir", "d", "--trail-age", "48h")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		`node_id +n1 +file FILE`, `http_addr +127.0.0.1:1 +file FILE`, `memory_limit +2GiB +variable CLAIMQ_MEMORY_LIMIT`,
		`trail_age +48h +flag --trail-age`, `peer_addr +127.0.0.1:7401 +default`, `join +- +default`,
		`keys +ops \(operator, 6ca13d52\.\.\., the standard rate, all types\) +file FILE`,
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").MatchString(stdout) {
			t.Errorf("it does not show %s:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, shownHash) || strings.Contains(stdout, "no_raft") {
		t.Errorf("it shows what it should not:\n%s", stdout)
	}
	if !strings.Contains(stderr, "did you mean CLAIMQ_LOG_LEVEL?") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("warnings are %q", stderr)
	}
}

func TestConfigShow_JSON(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := showConfigOf(t, shownFile, nil, "--data-dir", "d", "--output", "json", "--allowed-origins", "https://a,https://b")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var answer struct {
		Settings []operate.ShownSetting
		Warnings []string
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, s := range answer.Settings {
		value, _ := json.Marshal(s.Value)
		got[s.Name] = string(value) + " " + s.Origin + " " + s.Source
	}
	for name, want := range map[string]string{
		"memory_limit":    "1073741824 file FILE",
		"bootstrap":       "false default ",
		"trail_age":       `"0" default `,
		"join":            "[] default ",
		"allowed_origins": `["https://a","https://b"] flag --allowed-origins`,
		"keys":            `["ops (operator, 6ca13d52..., the standard rate, all types)"] file FILE`,
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
}

// If there are mistakes, only these are shown, all of them, and the exit code is that for wrong usage.
func TestConfigShow_Mistakes(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := showConfigOf(t, "nod_id: n1\n", nil, "--log-level", "loud")
	if code != term.ExitUsage || stdout != "" {
		t.Errorf("exit code %d, shown %q", code, stdout)
	}
	for _, want := range []string{`did you mean "node_id"?`, "log_level", "data_dir"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it says nothing of %s: %s", want, stderr)
		}
	}
}
