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

// joinKeyFile holds a node's join keys, and reads their file again while the node runs.
type joinKeyFile struct {
	path    string // "" = none
	check   func(keys [][]byte) error
	logger  hclog.Logger
	current atomic.Pointer[[][]byte]
	wrong   string // the last reported problem; only for the goroutine that looks
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

// keys returns the keys in use; nil without a join key.
func (f *joinKeyFile) keys() [][]byte { return *f.current.Load() }

// look applies changes of the file unless check, which is set by then, rejects them. A problem is reported once.
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
