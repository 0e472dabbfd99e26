package zones

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Source provides a node's zones, from the binary or from a file that is read again when it
// changes. It is safe for concurrent use; nil means the binary.
type Source struct {
	file    string
	current atomic.Pointer[Data]

	mu   sync.Mutex
	seen stamp // of the file when it was last read
}

// stamp tells a file from one that was replaced or rewritten.
type stamp struct {
	size int64
	at   time.Time
}

// NewSource returns the zones of the file, or of the binary if file is "".
func NewSource(file string) (*Source, error) {
	s := &Source{file: file}
	if file == "" {
		return s, nil
	}
	_, err := s.Reload()
	return s, err
}

// Current returns the release in use.
func (s *Source) Current() *Data {
	if s == nil {
		return nil
	}
	return s.current.Load()
}

// Reload reads the file if it has changed; changed says whether its zones differ. A file
// that cannot be read changes nothing, and is reported once.
func (s *Source) Reload() (changed bool, err error) {
	if s.file == "" {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.file)
	if err != nil {
		gone := s.seen == stamp{} && s.current.Load() != nil
		s.seen = stamp{}
		if gone {
			return false, nil
		}
		return false, err
	}
	now := stamp{info.Size(), info.ModTime()}
	if now == s.seen {
		return false, nil
	}
	s.seen = now
	d, err := Open(s.file)
	if err != nil {
		return false, err
	}
	was := s.current.Swap(d)
	return was == nil || was.Sum() != d.Sum() || was.Version() != d.Version(), nil
}
