package procs

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A file that was just written can be run, even while others fork.
func TestWriteExecutable(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := exec.Command("true").Run(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	defer others.Wait()
	defer close(done)
	path := filepath.Join(t.TempDir(), "script")
	for range 100 {
		if err := WriteExecutable(path, []byte("#!/bin/sh\n")); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(path).Run(); err != nil {
			t.Fatal(err)
		}
	}
}
