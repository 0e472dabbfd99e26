// Package zonestest makes releases of time zones for tests.
package zonestest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Jump is a change of a zone's clocks: from At on they are Ahead of UTC.
type Jump struct {
	At    time.Time
	Ahead time.Duration
}

// Zone is the name of the only zone in a release.
const Zone = "Test/Here"

// Always returns a zone whose clocks never jump.
func Always(ahead time.Duration) []Jump { return []Jump{{At: time.Unix(0, 0), Ahead: ahead}} }

// Write writes a release with just Zone to a file, in one step, and returns its path.
func Write(t testing.TB, file, version string, jumps []Jump) string {
	t.Helper()
	var text bytes.Buffer
	w := zip.NewWriter(&text)
	for name, content := range map[string][]byte{"+VERSION": []byte(version + "\n"), Zone: compiled(jumps)} {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "zones.zip")
	if err := os.WriteFile(fresh, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// compiled returns a zone in the format of RFC 9636, version 1.
func compiled(jumps []Jump) []byte {
	b := append([]byte("TZif"), make([]byte, 16)...)
	number := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(int32(n))) }
	for _, n := range []int{0, 0, 0, len(jumps), len(jumps), 4} {
		number(n)
	}
	for _, j := range jumps {
		number(int(j.At.Unix()))
	}
	for i := range jumps {
		b = append(b, byte(i))
	}
	for _, j := range jumps {
		number(int(j.Ahead / time.Second))
		b = append(b, 0, 0)
	}
	return append(b, "XXX\x00"...)
}
