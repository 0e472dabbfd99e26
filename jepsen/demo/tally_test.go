package demo

import (
	"encoding/json"
	"time"

	"github.com/claimq/claimq/client"
)

const testRounds = 3

// ledger is two tasks that were submitted, done and found.
type ledger struct {
	tally *tally
	have  []*client.Task
}

func newLedger() *ledger {
	b := &ledger{tally: newTally()}
	for n, id := range []string{"1", "2"} {
		b.tally.submitted(id, n, time.Now())
		b.completed(id)
		b.add(id, n)
	}
	return b
}

func (b *ledger) completed(id string) { b.tally.completed(id, time.Now()) }

func (b *ledger) add(id string, n int) {
	result, err := json.Marshal(jobOf(n, testRounds).do())
	if err != nil {
		panic(err)
	}
	b.have = append(b.have, &client.Task{ID: id, Status: client.StatusCompleted, Result: result})
}
