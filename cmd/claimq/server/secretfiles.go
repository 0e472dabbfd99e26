package server

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

// nodeKeyFile is the node's private key in its data folder, created by package cluster/storage.
const nodeKeyFile = "node.key"

// secretFiles warns of files that other users can read or write but should not, once for each file and mode. Its methods are
// safe for concurrent use.
type secretFiles struct {
	logger hclog.Logger

	mu     sync.Mutex
	warned map[string]fs.FileMode // currently open files
}

func newSecretFiles(logger hclog.Logger) *secretFiles {
	return &secretFiles{logger: logger, warned: make(map[string]fs.FileMode)}
}

// look warns of the files that a configuration names: of those with secrets that others may read, and of those with keys,
// which are hashes, that others may write. It ignores files that cannot be examined, because reading them fails with an
// error anyway.
func (s *secretFiles) look(loaded *config.Loaded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range secretPaths(loaded) {
		mode, closed, open := term.OpenSecret(path)
		s.tell("others may read a file with secrets", path, mode, closed, open)
	}
	for _, path := range loaded.KeyFiles {
		mode, _, _ := term.OpenSecret(path)
		s.tell("others may write a file with keys", path, mode, mode&^othersWrite, mode&othersWrite != 0)
	}
}

// othersWrite are the permissions of a mode by which others write.
const othersWrite fs.FileMode = 0o022

// tell warns of a file that is open, unless it has warned of it with that mode. closed is the mode that it should have.
func (s *secretFiles) tell(text, path string, mode, closed fs.FileMode, open bool) {
	switch {
	case !open:
		delete(s.warned, path)
	case s.warned[path] != mode:
		s.warned[path] = mode
		s.logger.Warn(text, "file", path, "mode", fmt.Sprintf("%04o", mode), "fix", term.RestrictSecret(path, closed))
	}
}

// secretPaths returns the files that a server reads secrets from.
func secretPaths(loaded *config.Loaded) []string {
	paths := []string{loaded.JoinKeyFile, loaded.JoinTokenFile, loaded.HTTPTLS.KeyFile, loaded.PeerTLS.KeyFile}
	if loaded.DataDir != "" {
		paths = append(paths, filepath.Join(loaded.DataDir, nodeKeyFile))
	}
	return paths
}
