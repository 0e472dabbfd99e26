package fsm

import (
	"crypto/sha256"
	"math/big"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// The state hash is the sum of the records' hashes modulo 2^128, whatever
// their order. Computed here again, from the snapshot's bytes.
func TestSnapshot_HashIsTheSumOfItsRecords(t *testing.T) {
	t.Parallel()
	m := newSmall()
	applyLog(t, m, randomLog(3, 200))
	sum, records := new(big.Int), 0
	for _, c := range splitSnapshot(snapshotOf(t, m)) {
		for _, packed := range c.records {
			if c.kind == record.KindEnd {
				continue
			}
			h := sha256.Sum256(append([]byte{byte(c.kind)}, packed...))
			sum.Add(sum, new(big.Int).SetBytes(h[:16]))
			records++
		}
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128))
	var want [16]byte
	sum.FillBytes(want[:])
	if got := hashOf(m); got != want || records < 20 {
		t.Fatalf("hash %x of %d records, want %x", got, records, want)
	}
}
