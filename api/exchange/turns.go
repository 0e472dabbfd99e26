package exchange

import (
	"runtime"
	"time"

	"github.com/claimq/claimq/api/turn"
	"github.com/claimq/claimq/nodes"
)

// turnWait limits how long a read waits for its turn.
const turnWait = 5 * time.Second

// newLong returns the line for reads that may read much more than they show. Each waiting one occupies its request's
// memory, about 20 KiB.
func newLong() *turn.Line {
	return turn.New(turn.Config{
		AtATime: atATime(), Waiting: 1_024, Wait: turnWait, Rest: 50 * time.Millisecond,
		Bound: nodes.BoundReads, Text: "as many long reads wait for their turn as may, or this one has waited for 5 s",
	})
}

// newShort returns the line for the other reads. Each takes less CPU time than its transport, but without a limit
// Raft would wait for a core behind as many of them as there are connections.
func newShort() *turn.Line {
	return turn.New(turn.Config{
		AtATime: atATime(), Waiting: 8_192, Wait: turnWait, Rest: 2 * time.Millisecond, Cost: 150 * time.Microsecond,
		Bound: nodes.BoundReads, Text: "as many reads wait for their turn as may, or this one has waited for 5 s",
	})
}

// atATime returns how many reads of a line run at a time: one for each two cores.
func atATime() int { return max(runtime.GOMAXPROCS(0)/2, 1) }
