package term

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	// ownSecretMode is what a secret file of the process's own user may be open to.
	ownSecretMode fs.FileMode = 0o700
	// lentSecretMode is that for a file of somebody else, which the process may read
	// by its group alone: a package's configuration, or a mounted secret.
	lentSecretMode fs.FileMode = 0o740
)

// OpenSecret reports whether others than the process may read or write the file at
// path, what its mode is, and what it would have to be.
func OpenSecret(path string) (mode, closed fs.FileMode, open bool) {
	if path == "" {
		return 0, 0, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	return judgeSecret(info.Mode().Perm(), isOwn(info))
}

// judgeSecret is OpenSecret of a file with that mode; own says that it belongs to the
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

// MendSecret is the command that closes the file at path.
func MendSecret(path string, closed fs.FileMode) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(plainInShell, r) }) {
		path = ShellQuote(path)
	}
	return fmt.Sprintf("chmod %04o %s", closed, path)
}

// plainInShell are characters that a word for a shell may have without quotes.
const plainInShell = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"

// WarnOfSecret warns whoever gave a command of a file with a secret that others may read.
func (a *App) WarnOfSecret(path string) {
	if mode, closed, open := OpenSecret(path); open {
		fmt.Fprintf(a.Stderr, "warning: others may read %s (mode %04o): %s\n", Printable(path), mode, Printable(MendSecret(path, closed)))
	}
}
