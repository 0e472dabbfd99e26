// Package keyfile reads an API key or a token from a file that another program rewrites
// regularly, because tokens expire.
package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// bytesMax bounds the file: a token is at most 8 KiB.
	bytesMax = 16 << 10
	// lookInterval is the least time between two reads.
	lookInterval = time.Second
)

// File is a file with a key. Its methods are safe for concurrent use.
type File struct {
	path string

	mu   sync.Mutex // guards the fields below
	key  string
	read time.Time // last read, successful or not
}

// Open reads the file, which has one line, the key.
func Open(path string) (*File, error) {
	key, err := read(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, key: key, read: time.Now()}, nil
}

// Key returns the key in the file, read at most a second ago, or the previous one if the
// file cannot be read or has no key.
func (f *File) Key() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.read) >= lookInterval {
		f.readLocked(now)
	}
	return f.key
}

// Changed reads the file and reports whether its key differs from refused.
func (f *File) Changed(refused string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readLocked(time.Now())
	return f.key != refused
}

func (f *File) readLocked(now time.Time) {
	f.read = now
	if key, err := read(f.path); err == nil {
		f.key = key
	}
}

func read(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, bytesMax+1))
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	switch {
	case len(text) > bytesMax:
		return "", fmt.Errorf("%s has over %d bytes: it must have one line, an API key or a token", path, bytesMax)
	case key == "":
		return "", errors.New(path + " is empty: it must have one line, an API key or a token")
	case strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", errors.New(path + " has more than one line, or what no key has: it must have one line, an API key or a token")
	}
	return key, nil
}
