package exchange

import (
	"runtime"
	"time"

	"github.com/claimq/claimq/api/turn"
	"github.com/claimq/claimq/nodes"
)

// turnWait is how long a read waits for its turn.
const turnWait = 5 * time.Second

// newLong returns the line of the reads that may look at much more than they show. Those that
// wait take their request's memory, some 20 KiB each.
func newLong() *turn.Line {
	return turn.New(turn.Config{
		AtATime: atATime(), Waiting: 1_024, Wait: turnWait, Rest: 50 * time.Millisecond,
		Bound: nodes.BoundReads, Text: "as many long reads wait for their turn as may, or this one has waited for 5 s",
	})
}

// newShort returns the line of the others: each takes less time than what carries it. Were they
// not held back, Raft would wait for a core behind as many as there are connections.
func newShort() *turn.Line {
	return turn.New(turn.Config{
		AtATime: atATime(), Waiting: 8_192, Wait: turnWait, Rest: 2 * time.Millisecond, Cost: 150 * time.Microsecond,
		Bound: nodes.BoundReads, Text: "as many reads wait for their turn as may, or this one has waited for 5 s",
	})
}

// atATime returns how many reads of a line go on: one for each two cores.
func atATime() int { return max(runtime.GOMAXPROCS(0)/2, 1) }
