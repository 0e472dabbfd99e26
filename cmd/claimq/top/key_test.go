package top

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeys(t *testing.T) {
	t.Parallel()
	for read, want := range map[string][]key{
		"qT ":                  {'q', 'T', ' '},
		"\x03\x1a\x0c\t":       {keyQuit, keySuspend, keyRedraw, keyTab},
		"\x1b[A\x1b[6~\x1bOFx": {keyUp, keyPageDown, keyEnd, 'x'},
		"\x1b[1;5A\x1b[99~x":   {'x'}, // keys without a meaning here
		"\x1bx":                {keyEscape, 'x'},
		"\x00\xff":             {keyNone, keyNone},
	} {
		keys, rest := parseKeys([]byte(read))
		if diff := cmp.Diff(want, keys); diff != "" || len(rest) > 0 {
			t.Errorf("%q: rest %q, -want +got\n%s", read, rest, diff)
		}
		// The result does not depend on where the input is cut.
		for cut := range len(read) {
			first, rest := parseKeys([]byte(read[:cut]))
			second, rest := parseKeys(append(rest, read[cut:]...))
			if diff := cmp.Diff(want, append(first, second...)); diff != "" || len(rest) > 0 {
				t.Errorf("%q cut at %d: rest %q, -want +got\n%s", read, cut, rest, diff)
			}
		}
	}
	if keys, rest := parseKeys([]byte("\x1b[0000000000000000000000")); len(rest) > sequenceMax {
		t.Errorf("it waits for more: %v, %q", keys, rest)
	}
}

func TestScreen_press(t *testing.T) {
	t.Parallel()
	v := aView(t, many)
	s := Screen{Columns: 80, Rows: 24, Interval: time.Second}
	press := func(keys ...key) {
		t.Helper()
		for _, k := range keys {
			if s.press(k, v) {
				t.Errorf("%q ends it", rune(k))
			}
		}
	}
	press(keyDown, keyDown, keyUp, keyUp, keyUp)
	if s.First[TypesSection] != 0 {
		t.Errorf("scrolled above the top: %d", s.First)
	}
	press(keyPageDown)
	if s.First[TypesSection] != visible(v, s, TypesSection) {
		t.Errorf("a page is %d", s.First[TypesSection])
	}
	press(keyEnd, keyDown)
	if want := 400 - visible(v, s, TypesSection); s.First[TypesSection] != want {
		t.Errorf("the end is at %d, want %d", s.First[TypesSection], want)
	}
	press('o')
	if s.First[TypesSection] != 0 || s.Sort[TypesSection] != (Order{By: 'o'}) {
		t.Errorf("sorted: %+v", s)
	}
	press('r', keyTab, 's', 'p', '?', ' ')
	want := Screen{
		Columns: 80, Rows: 24, Interval: time.Second, Focus: WorkersSection, Help: true, Paused: true,
		Sort: [sectionCount]Order{TypesSection: {By: 'o', Reversed: true}, WorkersSection: {By: 's'}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	press('?', ' ', keyBackTab, keyBackTab)
	if s.Help || s.Paused || s.Focus != NodesSection {
		t.Errorf("back: %+v", s)
	}
	for _, k := range []key{'q', 'Q', keyQuit} {
		if !s.press(k, v) {
			t.Errorf("%q does not end it", rune(k))
		}
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	v := aView(t)
	for keys, want := range map[string]string{"p": "img.resize", "t": "img.resize", "c": "img.resize", "o": "report:weekly", "i": "img.resize", "d": "img.resize", "f": "mail", "tr": "sms", "fr": "img.resize"} {
		if got := sortTypes(v.Types, Order{By: keys[0], Reversed: len(keys) > 1})[0].TaskType; got != want {
			t.Errorf("types by %s: %s is first, want %s", keys, got, want)
		}
	}
	for keys, want := range map[string]string{"c": "resizer-1", "w": "idle", "s": "resizer-1", "cr": "idle", "wr": "w-report", "sr": "idle"} {
		if got := sortWorkers(v.Workers, Order{By: keys[0], Reversed: len(keys) > 1})[0].WorkerID; got != want {
			t.Errorf("workers by %s: %s is first, want %s", keys, got, want)
		}
	}
}
