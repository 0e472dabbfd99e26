package lossyfs

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// modelFile is a file in the model: bytes, now and synced.
type modelFile struct{ now, synced []byte }

// model is one folder of files, as simple as possible.
type model struct {
	now     map[string]*modelFile
	history []map[string]*modelFile // the names at the last sync and after each change since
}

// The following methods make one change each.

func (d *disk) make(dir *inode, name string, mode uint32) (*inode, syscall.Errno) {
	return d.change(dir, step{kind: stepMake, name: name, mode: mode})
}

func (d *disk) write(n *inode, data []byte, off int64) syscall.Errno {
	_, errno := d.change(n, step{kind: stepWrite, data: data, at: off})
	return errno
}

func newModel() *model {
	return &model{now: map[string]*modelFile{}, history: []map[string]*modelFile{{}}}
}

func (m *model) changed() { m.history = append(m.history, maps.Clone(m.now)) }

// harness makes the same changes to a disk and to the model.
type harness struct {
	t     *rapid.T
	disk  *disk
	model *model
}

func (h *harness) must(errno syscall.Errno) {
	if errno != 0 {
		h.t.Fatalf("unexpected error: %v", errno)
	}
}

func (h *harness) change(n *inode, s step) syscall.Errno {
	_, errno := h.disk.change(n, s)
	return errno
}

func (h *harness) inode(name string) *inode {
	in, errno := h.disk.lookup(h.disk.root, name)
	h.must(errno)
	return in
}

// anyFile draws one of the files; ok is false without files.
func (h *harness) anyFile() (name string, ok bool) {
	names := slices.Sorted(maps.Keys(h.model.now))
	if len(names) == 0 {
		return "", false
	}
	return rapid.SampledFrom(names).Draw(h.t, "file"), true
}

// act makes one random change.
func (h *harness) act() {
	name, ok := h.anyFile()
	what := rapid.IntRange(0, 6).Draw(h.t, "act")
	if !ok || what == 0 {
		h.create()
		return
	}
	in, f := h.inode(name), h.model.now[name]
	switch what {
	case 1, 2:
		off := rapid.IntRange(0, 4*pageSize).Draw(h.t, "off")
		data := bytes.Repeat([]byte{rapid.Byte().Draw(h.t, "byte")}, rapid.IntRange(1, 3*pageSize).Draw(h.t, "len"))
		h.must(h.disk.write(in, data, int64(off)))
		now := make([]byte, max(len(f.now), off+len(data)))
		copy(now, f.now)
		copy(now[off:], data)
		f.now = now
	case 3:
		size := rapid.IntRange(0, 6*pageSize).Draw(h.t, "size")
		h.must(h.change(in, step{kind: stepResize, at: int64(size)}))
		now := make([]byte, size)
		copy(now, f.now)
		f.now = now
	case 4:
		h.must(h.disk.sync(in))
		f.synced = bytes.Clone(f.now)
	case 5:
		h.must(h.change(h.disk.root, step{kind: stepRemove, name: name}))
		delete(h.model.now, name)
		h.model.changed()
	case 6:
		to := rapid.StringMatching("[a-d]").Draw(h.t, "to")
		h.must(h.change(h.disk.root, step{kind: stepRename, name: name, to: to}))
		if to != name {
			h.model.now[to] = f
			delete(h.model.now, name)
			h.model.changed()
		}
	}
	if rapid.IntRange(0, 5).Draw(h.t, "sync the folder") == 0 {
		h.must(h.disk.sync(h.disk.root))
		h.model.history = []map[string]*modelFile{maps.Clone(h.model.now)}
	}
}

func (h *harness) create() {
	name := rapid.StringMatching("[a-d]").Draw(h.t, "name")
	_, errno := h.disk.make(h.disk.root, name, syscall.S_IFREG|0o600)
	if h.model.now[name] != nil {
		if errno != syscall.EEXIST {
			h.t.Fatalf("make a file that is there: %v", errno)
		}
		return
	}
	h.must(errno)
	h.model.now[name] = &modelFile{}
	h.model.changed()
}

// contents reads all files of the disk.
func (h *harness) contents() map[string][]byte {
	got := map[string][]byte{}
	for name, in := range h.disk.root.folder.now {
		data := make([]byte, in.content.now.size)
		n, errno := h.disk.read(in, data, 0)
		h.must(errno)
		got[name] = data[:n]
	}
	return got
}

func (h *harness) equal(want map[string]*modelFile, data func(*modelFile) []byte) error {
	expected := map[string][]byte{}
	for name, f := range want {
		expected[name] = append([]byte{}, data(f)...)
	}
	if diff := cmp.Diff(expected, h.contents(), cmp.Comparer(bytes.Equal)); diff != "" {
		return fmt.Errorf("(-want +got)\n%.1000s", diff)
	}
	return nil
}

func TestDisk_Cut(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		h := &harness{t: t, disk: newDisk(), model: newModel()}
		for range rapid.IntRange(1, 40).Draw(t, "acts") {
			h.act()
		}
		if err := h.equal(h.model.now, func(f *modelFile) []byte { return f.now }); err != nil {
			t.Fatalf("before the cut: %v", err)
		}
		h.disk.Cut(nil)
		if _, errno := h.disk.lookup(h.disk.root, "a"); errno != syscall.EIO {
			t.Fatalf("without power: %v, want EIO", errno)
		}
		h.disk.restore()
		if err := h.equal(h.model.history[0], func(f *modelFile) []byte { return f.synced }); err != nil {
			t.Fatalf("after the cut: %v", err)
		}
		if again := h.disk.Cut(nil); again != (Loss{}) {
			t.Fatalf("cut again without a change: %+v", again)
		}
	})
}

// After a torn cut each page, each size and each folder is in some state between the last
// sync and the cut.
func TestDisk_Cut_torn(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		h := &harness{t: t, disk: newDisk(), model: newModel()}
		for range rapid.IntRange(1, 40).Draw(t, "acts") {
			h.act()
		}
		h.disk.Cut(rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))))
		h.disk.restore()
		got := h.contents()
		i := slices.IndexFunc(h.model.history, func(names map[string]*modelFile) bool {
			return slices.Equal(slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(got))) && allFit(names, got)
		})
		if i < 0 {
			t.Fatalf("no state of the folder fits what is left")
		}
	})
}

func allFit(names map[string]*modelFile, got map[string][]byte) bool {
	for name, f := range names {
		if !fits(f, got[name]) {
			return false
		}
	}
	return true
}

// fits reports whether each page is the synced or the new one, truncated or filled with
// zeros at one of the two sizes.
func fits(f *modelFile, got []byte) bool {
	if len(got) != len(f.now) && len(got) != len(f.synced) {
		return false
	}
	for off := 0; off < len(got); off += pageSize {
		end := min(off+pageSize, len(got))
		if !bytes.Equal(got[off:end], part(f.now, off, end)) && !bytes.Equal(got[off:end], part(f.synced, off, end)) {
			return false
		}
	}
	return true
}

// part returns data[off:end], with zeros for missing bytes.
func part(data []byte, off, end int) []byte {
	out := make([]byte, end-off)
	if off < len(data) {
		copy(out, data[off:])
	}
	return out
}

// Over many seeds a torn cut loses some changes, and keeps some.
func TestDisk_Cut_tornBites(t *testing.T) {
	t.Parallel()
	d := newDisk()
	in, errno := d.make(d.root, "a", syscall.S_IFREG)
	if errno != 0 {
		t.Fatal(errno)
	}
	d.write(in, make([]byte, 100*pageSize), 0)
	d.sync(in)
	d.sync(d.root)
	d.write(in, bytes.Repeat([]byte{1}, 100*pageSize), 0)
	loss := d.Cut(rand.New(rand.NewSource(1)))
	if loss.Pages < 20 || loss.Survived < 20 || loss.Pages+loss.Survived != 100 {
		t.Errorf("%+v, want about half of 100 pages lost", loss)
	}
}

func TestDisk_Cut_sameSeed(t *testing.T) {
	t.Parallel()
	cut := func() Loss {
		d := newDisk()
		for _, name := range []string{"a", "b", "c"} {
			in, _ := d.make(d.root, name, syscall.S_IFREG)
			d.sync(d.root)
			d.write(in, bytes.Repeat([]byte(name), 50*pageSize), 0)
		}
		return d.Cut(rand.New(rand.NewSource(7)))
	}
	first := cut()
	for range 20 {
		if again := cut(); again != first {
			t.Fatalf("with the same seed %+v and %+v", first, again)
		}
	}
}

func TestDisk_Cut_folders(t *testing.T) {
	t.Parallel()
	d := newDisk()
	dir, _ := d.make(d.root, "dir", syscall.S_IFDIR)
	file, _ := d.make(dir, "file", syscall.S_IFREG)
	d.write(file, []byte("x"), 0)
	d.sync(file)
	d.sync(dir)
	// The folder's own name was not synced.
	d.Cut(nil)
	d.restore()
	if _, errno := d.lookup(d.root, "dir"); errno != syscall.ENOENT {
		t.Errorf("a folder whose parent was not synced: %v, want ENOENT", errno)
	}
}

// The power goes right after the given change.
func TestDisk_cutAfter(t *testing.T) {
	t.Parallel()
	for changes := 1; changes <= 4; changes++ {
		d := newDisk()
		d.CutAfter(changes, nil)
		in, _ := d.make(d.root, "a", syscall.S_IFREG)
		done := 1
		for _, change := range []func() syscall.Errno{
			func() syscall.Errno { return d.write(in, []byte("x"), 0) },
			func() syscall.Errno { return d.sync(in) },
			func() syscall.Errno { return d.sync(d.root) },
			func() syscall.Errno {
				_, errno := d.change(d.root, step{kind: stepRename, name: "a", to: "b"})
				return errno
			},
		} {
			if _, errno := d.read(in, nil, 0); errno == 0 && change() == 0 {
				done++
			}
		}
		if done != changes || d.Powered() {
			t.Errorf("%d changes were made before the cut after %d", done, changes)
		}
		d.restore()
		if _, errno := d.lookup(d.root, "a"); (errno == 0) != (changes == 4) {
			t.Errorf("cut after %d changes: the file: %v", changes, errno)
		}
	}
}

func TestDisk_full(t *testing.T) {
	t.Parallel()
	d := newDisk()
	in, _ := d.make(d.root, "a", syscall.S_IFREG)
	d.pages = sizeMax / pageSize
	if errno := d.write(in, []byte("x"), 0); errno != syscall.ENOSPC {
		t.Errorf("write to a full disk: %v, want ENOSPC", errno)
	}
}
