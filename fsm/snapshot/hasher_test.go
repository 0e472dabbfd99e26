package snapshot

import (
	"bytes"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

func TestStateHash_DependsOnKindAndBytesAlone(t *testing.T) {
	t.Parallel()
	hash := func(add ...func(*StateHash)) [16]byte {
		var h StateHash
		for _, f := range add {
			f(&h)
		}
		return h.Sum()
	}
	a := func(h *StateHash) { h.Add(record.KindTask, []byte("a")) }
	b := func(h *StateHash) { h.Add(record.KindTask, bytes.Repeat([]byte("b"), 1000)) }
	c := func(h *StateHash) { h.Add(record.KindNode, []byte("a")) }
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
	var h StateHash
	for b.Loop() {
		h.Add(record.KindTask, packed)
	}
}
