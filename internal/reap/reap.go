// Package reap lets a process that is the first of its container, and has no init above it, reap
// what its commands leave behind: a process whose parent has ended becomes a child of the first
// one, and stays as a zombie until that asks for it. At the container's bound of processes
// nothing could be started any more.
package reap

import (
	"os/exec"
	"sync"
)

// Children are the commands that this process waits for itself. The zero value is ready; its
// methods are safe for concurrent use.
type Children struct {
	mu   sync.RWMutex // held to read while a command is started
	pids sync.Map     // of the commands
}

// Start starts cmd, for which the caller calls Ended once it has waited for it.
func (c *Children) Start(cmd *exec.Cmd) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	c.pids.Store(cmd.Process.Pid, nil)
	return nil
}

// Ended says that the command was waited for.
func (c *Children) Ended(cmd *exec.Cmd) { c.pids.Delete(cmd.Process.Pid) }
