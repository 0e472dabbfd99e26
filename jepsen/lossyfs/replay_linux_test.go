package lossyfs

import (
	"os"
	"path/filepath"
	"testing"
)

// Through the kernel: synced data is in the image, other data is not.
func TestReplay_ofAMountedDisk(t *testing.T) {
	t.Parallel()
	f := mount(t)
	journal := &Journal{}
	f.Record(journal, 0)
	path := filepath.Join(f.Dir(), "a")
	file, err := os.Create(path)
	check(t, err)
	_, err = file.WriteString("synced")
	check(t, err)
	check(t, file.Sync())
	syncDir(t, f.Dir())
	until := journal.Len()
	_, err = file.WriteString(", and not synced")
	check(t, err)
	check(t, file.Close())

	replay := journal.Replay()
	for ok := true; ok; {
		_, ok, err = replay.Next()
		check(t, err)
	}
	if replay.At() <= until {
		t.Errorf("%d changes, %d of them until the sync", replay.At(), until)
	}
	for lost, want := range map[bool]string{false: "synced, and not synced", true: "synced"} {
		dir := t.TempDir()
		check(t, replay.Image(0, dir, lost, nil))
		if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != want {
			t.Errorf("lost %v: %q, %v; want %q", lost, got, err, want)
		}
	}
}
