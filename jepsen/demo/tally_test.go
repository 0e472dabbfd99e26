package demo

import (
	"strconv"

	"github.com/claimq/claimq/client"
)

// ledger holds two tasks that were submitted, done and found.
type ledger struct {
	tally
	have []*client.Task
}

func newLedger() *ledger {
	b := &ledger{tally: newTally()}
	for n, id := range []string{"1", "2"} {
		b.submitted[id] = n
		b.completed[id]++
		b.add(id, n)
	}
	return b
}

func (b *ledger) add(id string, n int) {
	b.have = append(b.have, &client.Task{ID: id, Status: client.StatusCompleted, Result: []byte(strconv.Quote(hash(textOf(n))))})
}
