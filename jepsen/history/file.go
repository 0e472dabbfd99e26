package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Version is the version of the file format. ReadFile refuses any other.
const Version = 3

const formatName = "claimq-history"

// ErrFormat is returned for a file that is not a whole history.
var ErrFormat = errors.New("not a history file of this version")

// file is the JSON content of a history file.
type file struct {
	Format  string // formatName
	Version int
	*History
}

// WriteFile writes h to path.
func (h *History) WriteFile(path string) error {
	b, err := json.Marshal(file{formatName, Version, h})
	if err == nil {
		err = os.WriteFile(path, b, 0o666)
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// ReadFile reads the history in path. Errors: ErrFormat, wrapped, or that path cannot be read.
func ReadFile(path string) (*History, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	f := file{History: &History{}}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrFormat, err)
	}
	if f.Format != formatName || f.Version != Version {
		return nil, fmt.Errorf("%s: %q version %d, want version %d: %w", path, f.Format, f.Version, Version, ErrFormat)
	}
	return f.History, nil
}
