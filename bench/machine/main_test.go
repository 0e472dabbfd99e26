package main

import (
	"os"
	"slices"
	"testing"
	"time"
)

// The test's binary also runs as the server.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--"+serveFlag) {
		main()
		return
	}
	os.Exit(m.Run())
}

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

func TestRequestRate(t *testing.T) {
	t.Parallel()
	rate, err := requestRate(4, 20*time.Millisecond)
	if err != nil || rate <= 0 {
		t.Errorf("rate is %f, %v", rate, err)
	}
	if _, err := askAll("127.0.0.1:1", 1, time.Second); err == nil {
		t.Error("a server that is not there is measured")
	}
}
