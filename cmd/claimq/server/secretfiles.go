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

// secretFiles warns of files with secrets that other users can read, once for each file and mode. Its methods are
// safe for concurrent use.
type secretFiles struct {
	logger hclog.Logger

	mu     sync.Mutex
	warned map[string]fs.FileMode // currently open files
}

func newSecretFiles(logger hclog.Logger) *secretFiles {
	return &secretFiles{logger: logger, warned: make(map[string]fs.FileMode)}
}

// look warns of the files that a configuration names. It ignores files that cannot be examined, because reading them
// fails with an error anyway.
func (s *secretFiles) look(loaded *config.Loaded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range secretPaths(loaded) {
		mode, closed, open := term.OpenSecret(path)
		if !open {
			delete(s.warned, path)
			continue
		}
		if s.warned[path] == mode {
			continue
		}
		s.warned[path] = mode
		s.logger.Warn("others may read a file with secrets", "file", path, "mode", fmt.Sprintf("%04o", mode), "fix", term.MendSecret(path, closed))
	}
}

// secretPaths returns the files that a server reads secrets from.
func secretPaths(loaded *config.Loaded) []string {
	paths := append([]string{loaded.JoinKeyFile, loaded.JoinTokenFile, loaded.HTTPTLS.KeyFile, loaded.PeerTLS.KeyFile}, loaded.KeyFiles...)
	if loaded.DataDir != "" {
		paths = append(paths, filepath.Join(loaded.DataDir, nodeKeyFile))
	}
	return paths
}
