package procs

import (
	"os"
	"syscall"
)

// WriteExecutable writes a file that can be run at once. A process forked while a file is
// open for writing inherits that until it executes, and the system refuses to run a file
// that is open for writing ("text file busy", golang.org/issue/22315). So nothing is forked
// until the file is closed.
func WriteExecutable(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
