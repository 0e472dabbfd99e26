package reap

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

// lookInterval is the least time between two looks for zombies.
const lookInterval = time.Second

// Adopt reaps children that are not commands until ctx ends. It does nothing in a process that
// is not the first of its container.
func (c *Children) Adopt(ctx context.Context) {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
		if !pause.For(ctx, lookInterval) {
			return
		}
		c.reap()
	}
}

func (c *Children) reap() {
	c.mu.Lock() // so that no command has started without being known
	defer c.mu.Unlock()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !zombieOf(e.Name(), os.Getpid()) {
			continue
		}
		if _, ours := c.pids.Load(pid); !ours {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// zombieOf reports whether the process is a zombie whose parent is the given one.
func zombieOf(pid string, parent int) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	// The name, in parentheses, may contain anything.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	return len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(parent)
}
