package main

import (
	"os"
	"testing"
	"time"
)

func TestSyncRate(t *testing.T) {
	t.Parallel()
	rate, err := syncRate(t.TempDir(), 3, 20*time.Millisecond)
	if err != nil || rate <= 0 {
		t.Errorf("rate is %f, %v", rate, err)
	}
	if _, err := syncRate("/nonexistent", 1, time.Millisecond); err == nil {
		t.Error("a folder that is not there is measured")
	}
}

func TestAskAll(t *testing.T) {
	t.Parallel()
	in, end := newPipe(t)
	out, told := newPipe(t)
	ended := make(chan error, 1)
	go func() { ended <- serveEmpty(in, told) }()
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	addr := string(buf[:n-1])
	rate, err := askAll(addr, 4, 20*time.Millisecond)
	if err != nil || rate <= 0 {
		t.Errorf("rate is %f, %v", rate, err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := askAll(addr, 1, time.Second); err == nil {
		t.Error("a server that is gone is measured")
	}
}

func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}
