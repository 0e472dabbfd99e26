package door

import (
	"sync/atomic"
	"testing"
)

// A body that there is room for must continue whatever others ask for meanwhile.
func TestBodyShare_othersThatAreRefused(t *testing.T) {
	t.Parallel()
	const most = BodyCopies << 20
	var all atomic.Int64
	first, second := bodyShare{all: &all, most: most}, bodyShare{all: &all, most: most}
	if !first.expect(600<<10) || second.expect(600<<10) {
		t.Fatal("there must be room for one of two")
	}
	if !first.take(600<<10 + 100) { // including its header
		t.Error("refused for want of the room that another one has not got")
	}
	if got := all.Load(); got != BodyCopies*(600<<10+100) {
		t.Errorf("%d bytes are counted", got)
	}
	first.give()
	second.give()
	if got := all.Load(); got != 0 {
		t.Errorf("%d bytes are counted at the end", got)
	}
}
