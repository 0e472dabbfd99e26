package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A node's answers about starts are final: of two starts the later one wins, and of two
// with the same number the first.
func TestStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := OpenStarts(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := Start{}.Next()
	second := first.Next()
	for _, c := range []struct {
		told, want Start
	}{
		{Start{}, Start{}},
		{first, first},
		{first, first},
		{Start{}.Next(), first}, // of a copy of the same folder
		{second, second},
		{first, second},
		{Start{}, second},
	} {
		if got, err := s.Note("n1", c.told); err != nil || got != c.want {
			t.Errorf("told %v: %v, %v, want %v", c.told, got, err, c.want)
		}
		if latest := s.Latest("n1"); latest != c.want || s.Latest("n2") != (Start{}) {
			t.Errorf("told %v: the latest is %v, want %v", c.told, latest, c.want)
		}
		if s, err = OpenStarts(dir); err != nil {
			t.Fatal(err)
		}
	}
	for len(s.told) < startsMax-1 { // as if told: each time all of them are written
		s.told = append(s.told, toldStart{UUID: string(rune(len(s.told) + 0x100)), Start: first})
	}
	for _, node := range []string{"n2", "n3"} {
		if _, err := s.Note(node, first); err != nil {
			t.Fatal(err)
		}
	}
	if newest := s.told[len(s.told)-1].UUID; len(s.told) != startsMax || s.told[0].UUID == "n1" || newest != "n3" {
		t.Errorf("%d are kept, from %s to %s", len(s.told), s.told[0].UUID, newest)
	}
	path := filepath.Join(dir, startsFileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{strings.Replace(string(text), `"number": 1`, `"number": 3`, 1), "{"} {
		if err := os.WriteFile(path, []byte(damaged), dataFileMode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStarts(dir); !errors.Is(err, ErrCorruptIdentity) {
			t.Errorf("damaged: %v", err)
		}
	}
}
