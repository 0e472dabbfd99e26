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

// nodeKeyFile is the node's private key in its data folder, which package cluster/storage
// makes.
const nodeKeyFile = "node.key"

// secretFiles warns of files with secrets that others than the server may read, once
// for each file and mode. Its methods are safe for concurrent use.
type secretFiles struct {
	logger hclog.Logger

	mu     sync.Mutex
	warned map[string]fs.FileMode // of the files that are open now
}

func newSecretFiles(logger hclog.Logger) *secretFiles {
	return &secretFiles{logger: logger, warned: make(map[string]fs.FileMode)}
}

// look warns of the files that a configuration names. One that cannot be looked at is
// passed over: whoever reads it says so.
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

// secretPaths are the files that a server reads secrets from.
func secretPaths(loaded *config.Loaded) []string {
	paths := append([]string{loaded.JoinKeyFile, loaded.JoinTokenFile, loaded.HTTPTLS.KeyFile, loaded.PeerTLS.KeyFile}, loaded.KeyFiles...)
	if loaded.DataDir != "" {
		paths = append(paths, filepath.Join(loaded.DataDir, nodeKeyFile))
	}
	return paths
}
