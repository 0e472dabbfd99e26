package fsm

import (
	"bytes"
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

func TestStateHash_DependsOnKindAndBytesAlone(t *testing.T) {
	t.Parallel()
	hash := func(add ...func(*stateHash)) [16]byte {
		var h stateHash
		for _, f := range add {
			f(&h)
		}
		return h.sum()
	}
	a := func(h *stateHash) { h.add(record.KindTask, []byte("a")) }
	b := func(h *stateHash) { h.add(record.KindTask, bytes.Repeat([]byte("b"), 1000)) }
	c := func(h *stateHash) { h.add(record.KindNode, []byte("a")) }
	if hash(a, b, c) != hash(c, a, b) {
		t.Error("it depends on the order of records")
	}
	for name, other := range map[string][16]byte{
		"a record less": hash(a, b), "a record twice": hash(a, b, c, c), "another kind": hash(a, b, a), "nothing": hash(),
	} {
		if other == hash(a, b, c) {
			t.Errorf("%s gives the same hash", name)
		}
	}
}

func BenchmarkStateHash(b *testing.B) {
	packed := bytes.Repeat([]byte{7}, 400)
	var h stateHash
	for b.Loop() {
		h.add(record.KindTask, packed)
	}
}
