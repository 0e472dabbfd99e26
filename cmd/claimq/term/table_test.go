package term

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// A table is no wider than the terminal, if that is possible. Nothing that fits is cut or left out, and without
// a terminal nothing is.
func TestTable_fits(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		names := []string{"ID", "TYPE", "STATUS", "CREATED (UTC)", "WORKER", "PRIORITY", "ERROR"}
		texts := rapid.StringOfN(rapid.RuneFrom([]rune("abc é東京\u0301")), 0, 60, -1)
		rows := [][]string{names}
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			rows = append(rows, []string{
				strconv.Itoa(rapid.IntRange(1, 1<<30).Draw(t, "id")), Cell(texts.Draw(t, "type")), rapid.SampledFrom([]string{"pending", "claimed"}).Draw(t, "status"),
				"2026-01-02 03:04:05.000", Cell(texts.Draw(t, "worker")), rapid.SampledFrom([]string{"0", "-5"}).Draw(t, "priority"), Cell(texts.Draw(t, "error")),
			})
		}
		width := rapid.SampledFrom([]int{terminalWidthMin, 80, 120, 200}).Draw(t, "width")
		var whole, out bytes.Buffer
		if err := Columns(&whole, rows); err != nil {
			t.Fatal(err)
		}
		if err := (&App{Stdout: &out, Width: width}).Table(rows, "CREATED (UTC)", "PRIORITY", "WORKER"); err != nil {
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
		{"👩‍💻👩‍💻", 4, "👩‍💻👩‍💻"},
		{"👩‍💻👩‍💻👩‍💻", 5, "👩‍💻👩‍💻…"},
		{"", 1, ""},
	} {
		if got := CutTo(test.in, test.most); got != test.want || displayWidth(got) > test.most {
			t.Errorf("%q to %d is %q", test.in, test.most, got)
		}
	}
}

// The width is the terminal's, or COLUMNS overrides it. A file has none.
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
		got = append(got, WidthOf(keeper, columns))
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got = append(got, WidthOf(file, "61")); !slices.Equal(got, []int{97, 61, 97, terminalWidthMin, 0}) {
		t.Errorf("the widths are %v", got)
	}
}
