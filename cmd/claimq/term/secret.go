package term

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	// ownSecretMode is the widest mode for a secret file of the process's own user.
	ownSecretMode fs.FileMode = 0o700
	// sharedSecretMode is the widest mode for a file of another user. The process may read it through its group alone,
	// as with a package's configuration or a mounted secret.
	sharedSecretMode fs.FileMode = 0o740
)

// OpenSecret reports whether others may read or write the file at path. It returns the file's mode and the mode that
// it should have.
func OpenSecret(path string) (mode, closed fs.FileMode, open bool) {
	if path == "" {
		return 0, 0, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	return checkSecret(info.Mode().Perm(), isOwn(info))
}

// checkSecret is OpenSecret for a file with that mode. own means that the process's user owns the file.
func checkSecret(perm fs.FileMode, own bool) (mode, closed fs.FileMode, open bool) {
	allowed := sharedSecretMode
	if own {
		allowed = ownSecretMode
	}
	return perm, perm & allowed, perm&^allowed != 0
}

func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// RestrictSecret returns the command that closes the file at path.
func RestrictSecret(path string, closed fs.FileMode) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(plainInShell, r) }) {
		path = ShellQuote(path)
	}
	return fmt.Sprintf("chmod %04o %s", closed, path)
}

// plainInShell lists the characters that need no quotes in a shell.
const plainInShell = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"

// WarnOfSecret warns the user if others may read a secret file.
func (a *App) WarnOfSecret(path string) {
	if mode, closed, open := OpenSecret(path); open {
		fmt.Fprintf(a.Stderr, "warning: others may read %s (mode %04o): %s\n", Printable(path), mode, Printable(RestrictSecret(path, closed)))
	}
}
