package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/config"
)

const (
	// nodeKeyFile is the node's private key in its data folder, which package cluster/storage
	// makes.
	nodeKeyFile = "node.key"
	// ownSecretMode is what a secret file of the process's own user may be open to.
	ownSecretMode fs.FileMode = 0o700
	// lentSecretMode is that for a file of somebody else, which the process may read
	// by its group alone: a package's configuration, or a mounted secret.
	lentSecretMode fs.FileMode = 0o740
)

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
		mode, closed, open := openSecret(path)
		if !open {
			delete(s.warned, path)
			continue
		}
		if s.warned[path] == mode {
			continue
		}
		s.warned[path] = mode
		s.logger.Warn("others may read a file with secrets", "file", path, "mode", fmt.Sprintf("%04o", mode), "mend", mendSecret(path, closed))
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

// openSecret reports whether others than the process may read or write the file at
// path, what its mode is, and what it would have to be.
func openSecret(path string) (mode, closed fs.FileMode, open bool) {
	if path == "" {
		return 0, 0, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	return judgeSecret(info.Mode().Perm(), isOwn(info))
}

// judgeSecret is openSecret of a file with that mode; own says that it belongs to the
// process's own user.
func judgeSecret(perm fs.FileMode, own bool) (mode, closed fs.FileMode, open bool) {
	allowed := lentSecretMode
	if own {
		allowed = ownSecretMode
	}
	return perm, perm & allowed, perm&^allowed != 0
}

func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// mendSecret is the command that closes the file at path.
func mendSecret(path string, closed fs.FileMode) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(plainInShell, r) }) {
		path = shellQuote(path)
	}
	return fmt.Sprintf("chmod %04o %s", closed, path)
}

// plainInShell are characters that a word for a shell may have without quotes.
const plainInShell = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"

// warnOfSecret is secretFiles.look of one file, for a command that a person gave.
func (a *app) warnOfSecret(path string) {
	if mode, closed, open := openSecret(path); open {
		fmt.Fprintf(a.stderr, "warning: others may read %s (mode %04o): %s\n", printable(path), mode, printable(mendSecret(path, closed)))
	}
}
