package fsm

import (
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
)

// Compared is a machine and the model, which get the same entries: for tests of logs
// that are made outside.
type Compared struct {
	t   rapid.TB
	m   *Machine
	s   *model
	rng *rand.Rand
}

// NewCompared returns both before any entry.
func NewCompared(t rapid.TB, seed uint64) *Compared {
	return &Compared{t: t, m: newRestful(), s: newModel(), rng: rand.New(rand.NewPCG(seed, 1))}
}

// Entry applies an entry to both machines. All results must be the same and, at intervals,
// everything that can be read; then the machine is replaced by its restored snapshot.
func (c *Compared) Entry(index uint64, entry []byte) {
	c.t.Helper()
	stamp, commands, err := command.DecodeEntry(entry)
	if err != nil {
		c.t.Fatalf("entry %d: %v", index, err)
	}
	compareEntry(c.t, c.m, c.s, testEntry{index, stamp, commands})
	switch c.rng.IntN(32) {
	case 0:
		c.m, c.s.counted = restoredLike(c.t, c.m), nil
	case 1, 2:
		compareReads(c.t, newGenerator(c.rng.IntN), c.m, c.s)
	}
}
