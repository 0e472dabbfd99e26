package claimable

import (
	"math/bits"

	"github.com/claimq/claimq/fsm/record"
)

// Dice say which tasks are taken at random: the same ones on every node, in the same entry
// of the log.
type Dice struct {
	Index uint64 // of the entry
	Place int    // of the command in it
	picks int    // tasks that the command took at random
}

// pick draws a number below total: from a hash of the log index, the command's place
// in the entry and the pick's number.
func (d *Dice) pick(total int) int {
	hi, _ := bits.Mul64(hashOfPick(d.Index, d.Place, d.picks), uint64(total))
	return int(hi)
}

// hashOfPick returns the hash that a random claim goes by. It decides what is
// in the state, so it never changes.
func hashOfPick(index uint64, place, pick int) uint64 {
	return uint64(record.HashStart.Number(index).Number(uint64(place)).Number(uint64(pick)).Mixed())
}
