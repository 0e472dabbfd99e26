package cluster

import (
	"regexp"
	"runtime"
	"strings"
)

// ownBubble returns the name of the caller's bubble in stack traces.
func ownBubble() string {
	stack := make([]byte, 1<<10)
	return regexp.MustCompile(`synctest bubble \d+`).FindString(string(stack[:runtime.Stack(stack, false)]))
}

// onlyTransfersLeft reports whether nothing is left of a bubble but goroutines of transfers
// that Raft has forgotten: leadershipTransfer asks the replication to a peer to catch up,
// and waits forever if that has ended (raft v1.7.3, raft.go:1002: that send ignores
// stopCh), and so does the goroutine that waits for it (raft.go:733). They cannot be ended;
// a node restarts its Raft after a transfer.
func onlyTransfersLeft(bubble string) bool {
	stacks := make([]byte, 64<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	left := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		header, _, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, bubble+"]") && !strings.Contains(header, bubble+",") {
			continue
		}
		left++
		if !strings.Contains(stack, "raft.(*Raft).leadershipTransfer(") && !strings.Contains(stack, "raft.(*Raft).leaderLoop.func2()") {
			return false
		}
	}
	return left > 0
}
