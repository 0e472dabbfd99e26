package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a node was told it tells for good; of two starts the later one rules, and the
// first of two of the same number.
func TestStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openStarts(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := start{}.next()
	second := first.next()
	for _, c := range []struct {
		told, want start
	}{
		{start{}, start{}},
		{first, first},
		{first, first},
		{start{}.next(), first}, // of a copy of the same folder
		{second, second},
		{first, second},
		{start{}, second},
	} {
		if got, err := s.note("n1", c.told); err != nil || got != c.want {
			t.Errorf("told %v: %v, %v, want %v", c.told, got, err, c.want)
		}
		if s, err = openStarts(dir); err != nil {
			t.Fatal(err)
		}
	}
	for i := range startsMax {
		if _, err := s.note(string(rune(i+0x100)), first); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.told) != startsMax {
		t.Errorf("%d are kept", len(s.told))
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
		if _, err := openStarts(dir); !errors.Is(err, ErrCorruptIdentity) {
			t.Errorf("damaged: %v", err)
		}
	}
}
