package fsm

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// The estimate of the memory that the state takes is near to what it does take:
// memory_limit goes by it. Not parallel: others would be measured, too.
func TestMachine_Bytes(t *testing.T) {
	const tasks, each = 50_000, 100
	start := liveHeap()
	h := newMeasured(t)
	h.apply(SetLevel{Level: FeatureLevel})
	params := []byte(`"` + strings.Repeat("x", 254) + `"`)
	for i := range tasks / each {
		submit := Submit{}
		for j := range each {
			submit.Tasks = append(submit.Tasks, NewTask{Type: "mail", Params: params, MaxAttempts: DefaultAttempts, Key: fmt.Sprintf("key-%012d", i*each+j)})
		}
		h.apply(submit)
	}
	h.compare("pending", start)
	for i := range tasks / each {
		claims := h.apply(ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: each, RequestID: fmt.Sprintf("request-%d", i)}).Claims
		for j := range claims {
			h.apply(Complete{Hold: Hold{ID: claims[j].Task.ID, WorkerID: "worker-1", Token: claims[j].Token}, Result: []byte(`{"ok":true}`)})
		}
	}
	h.compare("ended", start)
	if share := h.m.EndedBytes() * 100 / h.m.Bytes(); share < 80 {
		t.Errorf("ended tasks are %d%% of the state, want most of it", share)
	}
	for h.m.EndedBytes() > 0 {
		h.apply(Evict{})
	}
	h.compare("evicted", start)
}

// measured is a state whose memory is measured.
type measured struct {
	t     *testing.T
	m     *Machine
	index uint64
	stamp Stamp
}

func newMeasured(t *testing.T) *measured {
	return &measured{t: t, m: New(), stamp: Stamp{U: 1, T: 1_700_000_000_000}}
}

func (h *measured) apply(cmd Command) Result {
	h.t.Helper()
	h.index++
	h.stamp.U++
	h.stamp.T++
	applied, err := h.m.Apply(h.index, AppendEntry(nil, h.stamp, cmd))
	if err != nil {
		h.t.Fatal(err)
	}
	return applied.Results[0]
}

// compare checks the estimate against the heap, of which start was there before.
func (h *measured) compare(what string, start int64) {
	h.t.Helper()
	heap, estimate := liveHeap()-start, h.m.Bytes()
	h.t.Logf("%s: %d KiB by the estimate, %d KiB on the heap", what, estimate>>10, heap>>10)
	if heap > estimate*5/4 || heap < estimate*3/4 {
		h.t.Errorf("%s: an estimate of %d bytes, %d on the heap", what, estimate, heap)
	}
}

// liveHeap returns the bytes that live on the heap.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
