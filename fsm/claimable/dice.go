package claimable

import (
	"math/bits"

	"github.com/claimq/claimq/fsm/record"
)

// Dice decides which tasks a random claim takes. It is deterministic, so that every node
// takes the same tasks when it applies the entry.
type Dice struct {
	Index uint64 // of the log entry
	Place int    // of the command in the entry
	picks int    // random tasks that the command has taken
}

// pick returns a number below total. It comes from a hash of the log index, the command's
// place in the entry and the number of earlier picks.
func (d *Dice) pick(total int) int {
	hi, _ := bits.Mul64(hashOfPick(d.Index, d.Place, d.picks), uint64(total))
	return int(hi)
}

// hashOfPick returns the hash behind a pick. It decides the state, so it must never change.
func hashOfPick(index uint64, place, pick int) uint64 {
	return uint64(record.HashStart.Number(index).Number(uint64(place)).Number(uint64(pick)).Mixed())
}
