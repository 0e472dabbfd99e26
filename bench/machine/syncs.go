package main

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	syncBytes = 4 << 10
	fileBytes = 16 << 20 // overwritten again and again
)

// syncRate returns how often per second all writers together write syncBytes to their files and make them durable.
// The files are filled with zeros first, as those of the log are, so that the cost of allocation is not measured.
func syncRate(dir string, writers int, during time.Duration) (rate float64, err error) {
	dir, err = os.MkdirTemp(dir, "machine-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := make([]*os.File, writers)
	for i := range files {
		f, err := os.Create(filepath.Join(dir, string(rune('a'+i))))
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }()
		files[i] = f
		if _, err := f.Write(make([]byte, fileBytes)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	var done atomic.Int64
	errs := make([]error, writers)
	began := time.Now()
	var writing sync.WaitGroup
	for i, f := range files {
		writing.Go(func() {
			block := make([]byte, syncBytes)
			for at := int64(0); ; at = (at + syncBytes) % fileBytes {
				_, err := f.WriteAt(block, at)
				errs[i] = errors.Join(err, syncData(f))
				done.Add(1)
				if errs[i] != nil || time.Since(began) >= during {
					return
				}
			}
		})
	}
	writing.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}
