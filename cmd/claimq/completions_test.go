package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// completed returns the values that the tab key offers at the end of args, and the directive for the shell.
func completed(t *testing.T, environ []string, args ...string) (values []string, directive string) {
	t.Helper()
	var stdout bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: io.Discard, Environ: environ}
	if code := run(t.Context(), a, append([]string{cobra.ShellCompRequestCmd}, args...)); code != term.ExitDone {
		t.Errorf("completing %q: exit code %d", args, code)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

type offer struct {
	words string
	want  []string
}

// Completion gets ids, types, workers, tokens, schedules and nodes from the server, each for the commands that take
// them. Fixed words need no server.
func TestCompletion(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	environ := []string{"CLAIMQ_ENDPOINTS=" + d.url(0)}
	do := func(stdin, line string) {
		t.Helper()
		var stderr bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(stdin), Stdout: io.Discard, Stderr: &stderr, Environ: environ}
		if code := run(t.Context(), a, strings.Fields(line)); code != term.ExitDone {
			t.Fatalf("claimq %s: exit code %d: %s", line, code, stderr.String())
		}
	}
	do("", "submit mail 1 --priority 9")
	do("", "submit mail 2")
	do("", "submit sms 3 --delay 1h")
	do(`[{"step":"a","params":1,"task_type":"part"},{"step":"b","params":2,"task_type":"part","depends_on":["a"]}]`, "submit report --steps - --finalize claim") // 4, 5, 6
	do("", "submit bad 7 --max-attempts 1")
	do("", "claim --worker w2 --type bad")
	do("", "fail 7 --worker w2 --token 1 --error red\x1b[31m")
	do("", "claim --worker w1 --type mail")
	do("", "schedule set nightly report --every 1h")
	for _, test := range []offer{
		{"complete |", []string{"1\tmail, claimed by w1"}},
		{"release |", []string{"1\tmail, claimed by w1"}},
		{"complete 1 --worker |", []string{"w1\tholds task 1"}},
		{"complete 1 --token |", []string{"2\tof w1"}},
		{"complete 2 --token |", nil},
		{"complete 1 |", nil},
		{"retry |", []string{`7	bad, failed: red\x1b[31m`, "1\tmail, claimed by w1", "3\tsms, scheduled"}},
		{"update |", []string{"5\tpart, pending", "2\tmail, pending", "3\tsms, scheduled", "6\tpart, blocked"}},
		{"get 7|", []string{"7\tbad, failed: red\\x1b[31m"}},
		{"delete |", []string{`7	bad, failed: red\x1b[31m`}},
		{"steps |", []string{"4\treport, running"}},
		{"finalize |", []string{"4\treport, running"}},
		{"finalization claim |", []string{"4\treport, running"}},
		{"submit m|", []string{"mail\t1 pending, 1 claimed"}},
		{"submit mail |", nil},
		{"list --type s|", []string{"sms\t0 pending, 0 claimed"}},
		{"work --type m|", []string{"mail\t1 pending, 1 claimed"}},
		{"type set sm|", []string{"sms\t0 pending, 0 claimed"}},
		{"list --worker |", []string{"w1\tholds 1", "w2\tholds 0"}},
		{"schedule delete |", []string{"nightly\treport, every 1h00m"}},
		{"schedule set nightly re|", []string{"report\t0 pending, 0 claimed"}},
		{"cluster remove |", []string{"n1\tvoter, leader"}},
		{"cluster transfer |", nil},
		{"get --endpoint |", []string{d.url(0) + "\tn1, leader"}},
	} {
		got, directive := completed(t, environ, strings.Split(strings.TrimSuffix(test.words, "|"), " ")...)
		if diff := cmp.Diff(test.want, got, emptyIsNil); diff != "" || directive != ":36" {
			t.Errorf("%s directive %s, -want +got\n%s", test.words, directive, diff)
		}
	}
	if got, _ := completed(t, nil, "get", "--endpoint", d.url(0), "7"); len(got) != 1 {
		t.Errorf("with --endpoint it offers %q", got)
	}
}

// emptyIsNil makes an empty slice equal to nil.
var emptyIsNil = cmp.Transformer("emptyIsNil", func(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	return values
})

// Fixed words are offered without a server. If the server refuses or does not answer, nothing is offered and no error
// printed. Completion sends the API key.
func TestCompletion_withoutServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	keys := make(chan string, 1)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("X-API-Key")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"success":false,"error":"Unknown key","code":"unauthorized","message":"m"}`)
	}))
	defer refusing.Close()
	if got, directive := completed(t, []string{"CLAIMQ_API_KEY=secret", "CLAIMQ_ENDPOINTS=" + refusing.URL}, "get", ""); len(got) != 0 || directive != ":36" {
		t.Errorf("of a server that refuses it offers %q, %s", got, directive)
	}
	if key := <-keys; key != "secret" {
		t.Errorf("the key that was sent is %q", key)
	}
	environ := []string{"CLAIMQ_ENDPOINTS=http://" + l.Addr().String()}
	for words, want := range map[string]string{
		"get |":                          ":36",
		"list |":                         ":4",
		"list --limit |":                 ":4",
		"list --output t|":               "table json :36",
		"claim --output |":               "table json env :36",
		"key generate --role r|":         "reader producer worker operator :36",
		"submit mail --unique |":         "exists active :36",
		"server --data-dir |":            ":16",
		"get --ca-file |":                ":0",
		"snapshot restore |":             ":0",
		"work --type mail -- |":          ":0",
		"get --endpoint nonsense 1|":     ":36",
		"finalize 1 --outcome |":         "completed failed :36",
		"completion z|":                  "zsh :4",
		"list --status p|":               "pending scheduled blocked claimed running completed failed cancelled :36",
		"submit mail --steps f --final|": "--finalize :4",
	} {
		got, directive := completed(t, environ, strings.Split(strings.TrimSuffix(words, "|"), " ")...)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], "\t")
		}
		if line := strings.Join(append(got, directive), " "); line != want {
			t.Errorf("%s: it offers %s, want %s", words, line, want)
		}
	}
}

// Each completion belongs to an existing command and flag.
func TestCompletions_areOfCommands(t *testing.T) {
	t.Parallel()
	a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
	root := newRootCommand(a)
	known := map[string]bool{}
	term.EachCommand(root, func(cmd *cobra.Command, path string) {
		known[path] = true
		for _, f := range term.FlagsOf(cmd) {
			known[path+" --"+f.Name], known["--"+f.Name] = true, true
		}
	})
	for path := range argumentValues() {
		if !known[path] {
			t.Errorf("there is no command %s", path)
		}
	}
	for name := range flagValues(a) {
		if !known["--"+name] {
			t.Errorf("no command has --%s", name)
		}
	}
	for name := range commandFlagValues(a) {
		if !known[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
