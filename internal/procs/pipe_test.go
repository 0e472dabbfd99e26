package procs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/testwait"
)

// A pipe that is not read is full, even if it is stuffed twice; once it is read again
// everything is in the file.
func TestPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	p, err := openPipe(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.write.WriteString("before\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.stuff(); err != nil {
			t.Fatal(err)
		}
	}
	fd := int(p.write.Fd()) // Fd makes it block
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	if n, err := syscall.Write(fd, []byte{'x'}); n > 0 || err == nil {
		t.Errorf("wrote %d bytes to a pipe that nobody reads, %v", n, err)
	}
	p.hold(false)
	p.end()
	said, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(said), "before\n") || !strings.Contains(string(said), "this log is not read") {
		t.Errorf("got %.100q, %v", said, err)
	}
}

// A process whose pipe is broken gets an error, and stuffing the pipe is not one.
func TestPipe_broken(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	p, err := openPipe(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.read.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if err := p.stuff(); err != nil {
		t.Error(err)
	}
	if err := p.write.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	// A process that another test starts just then holds the end that was closed until it runs
	// its program.
	testwait.Until(t, "a write to fail", func() bool { _, err := p.write.WriteString("x"); return err != nil })
	p.end()
}
