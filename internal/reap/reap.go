// Package reap lets a process that is the first in its container, without an init, reap what its
// commands leave behind: a process whose parent has ended becomes a child of the first one, and
// stays as a zombie until that waits for it. Zombies count towards the container's limit of
// processes, so that at some point nothing could be started.
package reap

import (
	"os/exec"
	"sync"
)

// Children tracks the commands that this process waits for itself. The zero value is ready to
// use; its methods are safe for concurrent use.
type Children struct {
	mu   sync.RWMutex // read-locked while a command is started
	pids sync.Map     // of the commands
}

// Start starts cmd. The caller must call Ended once it has waited for it.
func (c *Children) Start(cmd *exec.Cmd) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	c.pids.Store(cmd.Process.Pid, nil)
	return nil
}

// Ended records that the command was waited for.
func (c *Children) Ended(cmd *exec.Cmd) { c.pids.Delete(cmd.Process.Pid) }
