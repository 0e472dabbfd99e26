package lossyfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// A replayed disk equals the first one after the same changes: as processes see it, and
// after a power cut, whole or torn.
func TestReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	proof.Check(t, func(t *rapid.T) {
		h := &harness{t: t, disk: newDisk(), model: newModel()}
		journal := &Journal{}
		h.disk.Record(journal, 7)
		for range rapid.IntRange(1, 20).Draw(t, "acts") {
			h.act()
		}
		replay := journal.Replay()
		for ok := true; ok; {
			var err error
			if _, ok, err = replay.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if replay.At() != journal.Len() {
			t.Fatalf("%d of %d changes", replay.At(), journal.Len())
		}
		compare(t, dir, h.disk, replay, int64(replay.At()))
	})
}

// compare cuts the disk, or does not, and compares it with the replayed one, whose replay
// continues.
func compare(t *rapid.T, dir string, d *disk, replay *Replay, seed int64) {
	cut := rapid.SampledFrom([]string{"kept", "lost", "torn"}).Draw(t, "cut")
	torn := func() *rand.Rand {
		if cut == "torn" {
			return rand.New(rand.NewSource(seed))
		}
		return nil
	}
	base, err := os.MkdirTemp(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(replay.Image(7, filepath.Join(base, "first"), cut != "kept", torn()), replay.Image(7, filepath.Join(base, "got"), cut != "kept", torn()))
	if cut != "kept" {
		d.Cut(torn())
	}
	if err = errors.Join(err, d.root.export(filepath.Join(base, "want"), false, nil)); err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join(base, "want"), filepath.Join(base, "first"))
	same(t, filepath.Join(base, "want"), filepath.Join(base, "got"))
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
}

// same fails if two folders of files differ.
func same(t *rapid.T, a, b string) {
	names := func(dir string) string {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return fmt.Sprint(entries)
	}
	if names(a) != names(b) {
		t.Fatalf("%s and %s", names(a), names(b))
	}
	entries, _ := os.ReadDir(a)
	for _, e := range entries {
		x, errX := os.ReadFile(filepath.Join(a, e.Name()))
		y, errY := os.ReadFile(filepath.Join(b, e.Name()))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Fatalf("%s: %d and %d bytes, %v, %v", e.Name(), len(x), len(y), errX, errY)
		}
	}
}
