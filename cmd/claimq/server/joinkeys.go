package server

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

// joinKeyFile keeps the join keys of a node as their file has them, and reads it again
// while the node runs.
type joinKeyFile struct {
	path    string // "" = none
	check   func(keys [][]byte) error
	logger  hclog.Logger
	current atomic.Pointer[[][]byte]
	wrong   string // what was last told of the file; for the goroutine that looks
}

// openJoinKeys reads the file.
func openJoinKeys(path string, logger hclog.Logger) (*joinKeyFile, error) {
	keys, err := config.ReadJoinKeys(path)
	if err != nil {
		return nil, term.UsageErrorf("%w", err)
	}
	f := &joinKeyFile{path: path, logger: logger}
	f.current.Store(&keys)
	return f, nil
}

// keys returns the keys in use; nil for none.
func (f *joinKeyFile) keys() [][]byte { return *f.current.Load() }

// look takes what is new in the file, if check, which is set by then, has nothing
// against it. What is wrong is told once.
func (f *joinKeyFile) look(time.Time) {
	if f.path == "" {
		return
	}
	keys, err := config.ReadJoinKeys(f.path)
	if err == nil {
		err = f.check(keys)
	}
	if err != nil {
		if f.wrong != err.Error() {
			f.wrong = err.Error()
			f.logger.Error("the new join key file is of no use: the keys before stay in use", "error", err)
		}
		return
	}
	f.wrong = ""
	if slices.EqualFunc(keys, f.keys(), bytes.Equal) {
		return
	}
	f.current.Store(&keys)
	takesNone := slices.ContainsFunc(keys, func(key []byte) bool { return len(key) == 0 })
	f.logger.Info("new join keys", "keys", len(keys), "shows_one", len(keys[0]) > 0, "takes_none", takesNone)
}
