package main

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// terminalCases are command lines on a terminal of 80 columns.
func terminalCases() []cliCase {
	one := func(call, answer string) map[string]string { return map[string]string{call: answer} }
	wordy := strings.NewReplacer(`"no route"`, `"dial tcp 10.0.0.17:25: connect: no route to host, after 3 tries \u001b[31m and 東京 to wait"`)
	failed := `{"id":12345,"task_type":"mail","priority":5,"max_attempts":3,"attempts":3,"status":"failed","worker_id":"mailer-7f9c-2210-abcdefghij","claim_token":9,` +
		`"created_at":"2026-01-02T02:00:00.000Z","error":"no route"}`
	return []cliCase{
		{name: "terminal list", width: 80, args: []string{"list"}, answers: one("GET /api/tasks?limit=100", wordy.Replace(`200 {"success":true,"tasks":[`+failed+`,`+cliTask+`],"next_cursor":null}`))},
		{name: "terminal list of all kinds", width: 80, args: []string{"list"}, answers: one("GET /api/tasks?limit=100", wordy.Replace(`200 {"success":true,"tasks":[`+cliLater+`,`+failed+`],"next_cursor":null}`))},
		{name: "terminal list that fits", width: 80, args: []string{"list"}, answers: one("GET /api/tasks?limit=100", `200 {"success":true,"tasks":[`+strings.Replace(cliTask, "w1", "w", 1)+`],"next_cursor":null}`)},
		{name: "terminal types", width: 80, args: []string{"types"}, answers: one("GET /api/types", `200 {"success":true,"types":[`+cliType+`]}`)},
		{name: "terminal workers", width: 80, args: []string{"workers"}, answers: one("GET /api/workers", `200 {"success":true,"workers":[{"worker_id":"mailer-7f9c-2210-abcdefghij","claimed":40,"task_ids":[`+
			strings.Repeat("12345,", 39)+`12346],"last_seen_at":"2026-01-02T03:04:00.750Z"}]}`)},
		{name: "terminal cluster status", width: 80, args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":5,"nodes":[`+
			cliNode("n1", "voter", "leader", true, "")+","+cliNode("n2", "voter", "unknown", false, "it was last heard of 3m0s ago")+","+cliNode("n3", "voter", "follower", true, "")+`]}`)},
		{name: "terminal get", width: 80, args: []string{"get", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":`+strings.Replace(cliDone, "RESULT", strings.Repeat("x", 2000), 1)+`}`)},
	}
}

// A table is no wider than the terminal, as long as that is possible; nothing is
// cut or left out that has room, and on no terminal nothing at all.
func TestTable_fits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"ID", "TYPE", "STATUS", "CREATED (UTC)", "WORKER", "PRIORITY", "ERROR"}
		texts := rapid.StringOfN(rapid.RuneFrom([]rune("abc é東京\u0301")), 0, 60, -1)
		rows := [][]string{names}
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			rows = append(rows, []string{
				strconv.Itoa(rapid.IntRange(1, 1<<30).Draw(t, "id")), cell(texts.Draw(t, "type")), rapid.SampledFrom([]string{"pending", "claimed"}).Draw(t, "status"),
				"2026-01-02 03:04:05.000", cell(texts.Draw(t, "worker")), rapid.SampledFrom([]string{"0", "-5"}).Draw(t, "priority"), cell(texts.Draw(t, "error")),
			})
		}
		width := rapid.SampledFrom([]int{terminalWidthMin, 80, 120, 200}).Draw(t, "width")
		var whole, out bytes.Buffer
		if err := columns(&whole, rows); err != nil {
			t.Fatal(err)
		}
		if err := (&app{stdout: &out, width: width}).table(rows, "CREATED (UTC)", "PRIORITY", "WORKER"); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if w := displayWidth(strings.TrimSuffix(line, "\n")); w > width && !strings.HasPrefix(line, "(no room") {
				t.Errorf("a line of %d columns for %d: %q", w, width, line)
			}
		}
		if tableWidth(rows) <= width && out.String() != whole.String() {
			t.Errorf("%s is changed to\n%s", whole.String(), out.String())
		}
		if !strings.Contains(out.String(), rows[1][0]) || !strings.Contains(out.String(), rows[1][2]) {
			t.Errorf("id or status is missing:\n%s", out.String())
		}
	})
}

func TestCutTo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"東京都", 6, "東京都"},
		{"東京都", 5, "東京…"},
		{"東京都", 4, "東…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"🐟🐟", 3, "🐟…"},
		{"", 1, ""},
	} {
		if got := cutTo(test.in, test.most); got != test.want || displayWidth(got) > test.most {
			t.Errorf("%q to %d is %q", test.in, test.most, got)
		}
	}
}

// The width is the terminal's, or what COLUMNS says of it; a file has none.
func TestTerminalWidth(t *testing.T) {
	t.Parallel()
	keeper, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	if err := unix.IoctlSetWinsize(int(keeper.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 97}); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, columns := range []string{"", "61", "wide", "1"} {
		got = append(got, terminalWidth(keeper, columns))
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got = append(got, terminalWidth(file, "61")); !slices.Equal(got, []int{97, 61, 97, terminalWidthMin, 0}) {
		t.Errorf("the widths are %v", got)
	}
}
