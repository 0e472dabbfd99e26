package procs

import (
	"os"
	"syscall"
)

// WriteExecutable writes a file that can be run at once. What is forked while a
// file is open for writing has it open too, until it executes, and the system runs
// no file that anybody writes ("text file busy", golang.org/issue/22315): so
// nothing is forked until the file is closed.
func WriteExecutable(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
