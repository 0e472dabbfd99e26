package lossyfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// mount mounts a disk for the test.
func mount(t *testing.T) *FS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a FUSE file system: run it as root")
	}
	f, err := New(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// check fails the test if err is not nil.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// syncDir syncs a folder.
func syncDir(t *testing.T, path string) {
	t.Helper()
	d, err := os.Open(path)
	check(t, err)
	check(t, errors.Join(d.Sync(), d.Close()))
}

// Operations of programs on files, through the kernel.
func TestFS(t *testing.T) {
	t.Parallel()
	f := mount(t)
	dir := filepath.Join(f.Dir(), "data")
	check(t, os.Mkdir(dir, 0o700))
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	check(t, os.WriteFile(a, []byte("hello, disk"), 0o600))
	check(t, os.Rename(a, b))
	check(t, os.Truncate(b, 5))
	got, err := os.ReadFile(b)
	check(t, err)
	if string(got) != "hello" {
		t.Errorf("%q", got)
	}
	info, err := os.Stat(b)
	check(t, err)
	if info.Size() != 5 || info.Mode() != 0o600 {
		t.Errorf("size %d, mode %v", info.Size(), info.Mode())
	}
	file, err := os.OpenFile(b, os.O_RDWR, 0)
	check(t, err)
	check(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	check(t, syscall.Fallocate(int(file.Fd()), 0, 0, 10_000))
	check(t, os.Remove(b))
	if _, err := file.WriteAt([]byte("still here"), 0); err != nil {
		t.Error("write to a removed file that is open:", err)
	}
	check(t, file.Close())
	if err := os.Rename(dir, filepath.Join(f.Dir(), "data2")); err != nil {
		t.Error(err)
	}
	check(t, os.Remove(filepath.Join(f.Dir(), "data2")))
	entries, err := os.ReadDir(f.Dir())
	if err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestFS_Cut(t *testing.T) {
	t.Parallel()
	f := mount(t)
	path := filepath.Join(f.Dir(), "file")
	file, err := os.Create(path)
	check(t, err)
	defer file.Close()
	write := func(text string) {
		_, err := file.WriteString(text)
		check(t, err)
	}
	write("synced")
	check(t, file.Sync())
	syncDir(t, f.Dir())
	write(" and not")
	check(t, os.WriteFile(filepath.Join(f.Dir(), "other"), nil, 0o600))

	loss := f.Cut(nil)
	if want := (Loss{Pages: 1, Sizes: 1, Names: 1}); loss != want {
		t.Errorf("loss %+v, want %+v", loss, want)
	}
	if _, err := file.WriteString("x"); !errors.Is(err, syscall.EIO) {
		t.Errorf("write without power: %v, want EIO", err)
	}
	check(t, f.Restore())
	if _, err := file.WriteString("x"); err == nil {
		t.Error("a file that was open before the cut can be written")
	}
	got, err := os.ReadFile(path)
	check(t, err)
	if string(got) != "synced" {
		t.Errorf("after the cut: %q", got)
	}
	if _, err := os.Stat(filepath.Join(f.Dir(), "other")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file whose name was not synced: %v", err)
	}
}

// The programs that the test starts, all of them itself.
const (
	roleEnv = "CLAIMQ_TEST_ROLE" // write or read
	pathEnv = "CLAIMQ_TEST_PATH"
	syncEnv = "CLAIMQ_TEST_SYNC"
)

var bucket = []byte("bucket")

// writer commits keys 0, 1, ... and prints each, until it is killed.
func writer(path string, noSync bool) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: noSync, NoGrowSync: noSync}) // without the latter it syncs whenever the file grows
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	if noSync { // otherwise there is not even a database
		if err := db.Sync(); err != nil {
			return err
		}
	}
	for i := 0; ; i++ {
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			return b.Put(fmt.Appendf(nil, "%08d", i), bytes.Repeat([]byte("v"), 100))
		})
		if err != nil {
			return err
		}
		fmt.Println("committed", i)
	}
}

// reader returns the number of keys without a gap, and checks the database.
func reader(path string) (count int, err error) {
	defer func() {
		if damage := recover(); damage != nil {
			err = fmt.Errorf("damaged: %v", damage)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return count, db.View(func(tx *bolt.Tx) error {
		var damage []error // read to the end, because the check runs in the background until then
		for err := range tx.Check() {
			damage = append(damage, err)
		}
		if len(damage) > 0 {
			return damage[0]
		}
		if b := tx.Bucket(bucket); b != nil {
			for b.Get(fmt.Appendf(nil, "%08d", count)) != nil {
				count++
			}
		}
		return nil
	})
}

// child starts the test again in another role. Databases are mapped into memory, which this
// process must not do with files that it serves.
func child(t *testing.T, role, path string, sync bool) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestFS_Cut_bolt$")
	cmd.Env = append(os.Environ(), roleEnv+"="+role, pathEnv+"="+path, syncEnv+"="+strconv.FormatBool(sync))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// loseBolt kills a program that writes a database, cuts the power, and returns the number
// of acknowledged commits and of those still there. err says that the database cannot be
// read.
func loseBolt(t *testing.T, sync bool, torn *rand.Rand) (acked, found int, err error) {
	f := mount(t)
	path := filepath.Join(f.Dir(), "bolt.db")
	cmd := child(t, "write", path, sync)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for acked < 200 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "committed ") {
			acked++
		}
	}
	check(t, cmd.Process.Kill())
	loss := f.Cut(torn)
	cmd.Wait()
	if acked < 200 {
		t.Fatalf("the writer ended after %d commits: %s", acked, lines.Text())
	}
	check(t, f.Restore())
	text, err := child(t, "read", path, sync).CombinedOutput()
	t.Logf("%d acknowledged, lost: %+v, then: %s", acked, loss, bytes.TrimSpace(text))
	if err != nil {
		return acked, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "found "); ok {
			found, err = strconv.Atoi(strings.TrimSpace(n))
		}
	}
	return acked, found, err
}

// The file system has an effect: a database that syncs keeps everything that it
// acknowledged, one that does not loses some.
func TestFS_Cut_bolt(t *testing.T) {
	switch os.Getenv(roleEnv) {
	case "write":
		t.Fatal(writer(os.Getenv(pathEnv), os.Getenv(syncEnv) == "false"))
	case "read":
		count, err := reader(os.Getenv(pathEnv))
		check(t, err)
		fmt.Println("found", count)
		return
	}
	t.Parallel()
	for name, torn := range map[string]func() *rand.Rand{
		"whole": func() *rand.Rand { return nil },
		"torn":  func() *rand.Rand { return rand.New(rand.NewSource(1)) },
	} {
		t.Run("synced, "+name, func(t *testing.T) {
			t.Parallel()
			acked, found, err := loseBolt(t, true, torn())
			if err != nil || found < acked {
				t.Errorf("%d of %d acknowledged commits are there (%v), want all", found, acked, err)
			}
		})
		t.Run("not synced, "+name, func(t *testing.T) {
			t.Parallel()
			acked, found, err := loseBolt(t, false, torn())
			if err == nil && found >= acked {
				t.Errorf("%d of %d acknowledged commits are there: the power cut took nothing", found, acked)
			}
		})
	}
}

// A crashed run leaves a mount without a server. The next run removes it.
func TestNew_removesStale(t *testing.T) {
	dir := filepath.Join(os.TempDir(), "claimq-lossyfs-crash")
	if os.Getenv(roleEnv) == "crash" {
		_, err := New(os.Getenv(pathEnv))
		check(t, err)
		fmt.Println("mounted")
		select {}
	}
	mount(t) // root
	cmd := exec.Command(os.Args[0], "-test.run=^TestNew_removesStale$")
	cmd.Env = append(os.Environ(), roleEnv+"=crash", pathEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "mounted" {
		t.Fatalf("%q", lines.Text())
	}
	check(t, cmd.Process.Kill())
	cmd.Wait()
	mount(t)
	if _, err := os.ReadDir(dir); err != nil {
		t.Errorf("the mount of a crashed run: %v", err)
	}
	os.Remove(dir)
}

// A full disk accepts calls that need no more room, and fails all others.
func TestFS_Fill(t *testing.T) {
	t.Parallel()
	f := mount(t)
	path := filepath.Join(f.Dir(), "a")
	check(t, os.WriteFile(path, make([]byte, pageSize), 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	defer file.Close()
	f.Fill(true)
	_, err = file.WriteAt([]byte("over what is there"), 0)
	check(t, err)
	if _, err := file.WriteAt([]byte("behind it"), pageSize); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write behind the end: %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir(), "b"), nil, 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("another file: %v", err)
	}
	var free syscall.Statfs_t
	check(t, syscall.Statfs(f.Dir(), &free))
	if free.Bavail != 0 {
		t.Errorf("%d blocks are free", free.Bavail)
	}
	f.Fill(false)
	_, err = file.WriteAt([]byte("behind it"), pageSize)
	check(t, err)
}

// A disk that hangs answers no calls until it is released.
func TestFS_Hang(t *testing.T) {
	t.Parallel()
	f := mount(t)
	release := f.Hang()
	ended := make(chan error, 1)
	go func() { ended <- os.WriteFile(filepath.Join(f.Dir(), "a"), []byte("x"), 0o600) }()
	select {
	case err := <-ended:
		t.Errorf("it was written: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	check(t, <-ended)
}
