package fsm

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// memoryTasks is of how many tasks the memory is measured.
var memoryTasks = flag.Int("memory.tasks", 10_000, "tasks of which the memory is measured")

// stateBytes is the memory of an empty state, which is not charged to tasks.
const stateBytes = 512 << 10

// memoryEach is the number of tasks that a command submits or claims.
const memoryEach = 100

// The estimate of the memory that the state takes is within a tenth of what it
// does take, whatever the tasks look like: memory_limit goes by it. Not parallel:
// others would be measured, too.
func TestMachine_Bytes(t *testing.T) {
	params := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, shape := range []struct {
		name string
		task func(i int) record.NewTask
		then func(h *measured)
	}{
		{"parents of 9 steps", func(int) record.NewTask {
			p := &record.NewParent{}
			for i := range uint16(9) {
				s := record.NewStep{Name: fmt.Sprint("step-", i), Task: record.NewTask{Type: "mail", Params: params(256), MaxAttempts: record.DefaultAttempts}}
				if i > 4 {
					s.DependsOn = []uint16{i - 2, i - 1}
				}
				p.Steps = append(p.Steps, s)
			}
			return record.NewTask{Parent: p}
		}, nil},
		{"pending, 2 bytes", func(int) record.NewTask { return record.NewTask{Params: params(2)} }, nil},
		{"pending, 256 bytes", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, nil},
		{"pending, 3,000 bytes", func(int) record.NewTask { return record.NewTask{Params: params(3000)} }, nil},
		{"pending, 6,000 bytes", func(int) record.NewTask { return record.NewTask{Params: params(6000)} }, nil},
		{"pending, with keys", func(i int) record.NewTask {
			return record.NewTask{Params: params(256), Key: fmt.Sprintf("key-%012d", i)}
		}, nil},
		{"pending, with labels", func(i int) record.NewTask {
			return record.NewTask{Params: params(256), Labels: []record.Label{{Name: "customer", Value: fmt.Sprint("c", i%1000)}, {Name: "region", Value: "eu-central"}, {Name: "tier", Value: "gold"}}}
		}, nil},
		{"pending, in 100 groups", func(i int) record.NewTask {
			return record.NewTask{Params: params(256), Group: fmt.Sprint("group-", i%100)}
		}, nil},
		{"pending, a group each", func(i int) record.NewTask { return record.NewTask{Params: params(256), Group: fmt.Sprint("group-", i)} }, nil},
		{"pending, a share key each", func(i int) record.NewTask {
			return record.NewTask{Params: params(2), ShareKey: fmt.Sprint("share-", i)}
		}, nil},
		{"pending, a share key each, fair", func(i int) record.NewTask {
			return record.NewTask{Params: params(2), ShareKey: fmt.Sprint("share-", i)}
		}, func(h *measured) {
			h.apply(command.SetType{Type: "mail", Set: record.TypeFair, Settings: record.TypeSettings{Fair: true}})
		}},
		{"pending, two of a share key, fair, after one was claimed", func(i int) record.NewTask {
			return record.NewTask{Params: params(2), ShareKey: fmt.Sprint("share-", i/2)}
		}, func(h *measured) {
			h.apply(command.SetType{Type: "mail", Set: record.TypeFair, Settings: record.TypeSettings{Fair: true}})
			for range *memoryTasks / memoryEach / 2 {
				h.apply(command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: memoryEach})
			}
		}},
		{"pending, a type each", func(i int) record.NewTask { return record.NewTask{Params: params(2), Type: fmt.Sprint("type-", i)} }, nil},
		{"pending, a priority each", func(i int) record.NewTask {
			return record.NewTask{Params: params(2), Priority: int32(i)}
		}, nil},
		{"pending, a number of attempts left each", func(i int) record.NewTask {
			return record.NewTask{Params: params(2), Type: fmt.Sprint("type-", i/command.AttemptsLeftMax), MaxAttempts: int32(i%command.AttemptsLeftMax + 1)}
		}, nil},
		{"cancelled, a type each", func(i int) record.NewTask { return record.NewTask{Params: params(2), Type: fmt.Sprint("type-", i)} }, func(h *measured) {
			for i := range *memoryTasks {
				h.apply(command.Cancel{ID: uint64(i + 1)})
			}
		}},
		{"scheduled", func(i int) record.NewTask {
			return record.NewTask{Params: params(256), DelayMS: int64(1_000_000 + i*7919%1_000_000)}
		}, nil},
		{"pending, that may expire", func(i int) record.NewTask {
			return record.NewTask{Params: params(256), ExpiresAt: 1_800_000_000_000 + int64(i*7919%1_000_000)}
		}, nil},
		{"pending again", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, func(h *measured) {
			h.claims(func(c *Claim) command.Command {
				return command.Fail{Hold: h.holdOf(c), Error: "the other side did not answer"}
			})
		}},
		{"claimed", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, func(h *measured) {
			h.claims(func(*Claim) command.Command { return nil })
		}},
		{"completed", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, func(h *measured) {
			h.claims(func(c *Claim) command.Command {
				return command.Complete{Hold: h.holdOf(c), Result: []byte(`{"ok":true}`)}
			})
		}},
		{"completed, each claimed by itself", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, func(h *measured) {
			h.claimsEach(1, func(c *Claim) command.Command { return command.Complete{Hold: h.holdOf(c)} })
		}},
		{"completed, tiny, with keys", func(i int) record.NewTask { return record.NewTask{Params: params(2), Key: fmt.Sprintf("key-%012d", i)} }, func(h *measured) {
			h.claims(func(c *Claim) command.Command { return command.Complete{Hold: h.holdOf(c)} })
		}},
		{"failed, with errors", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, func(h *measured) {
			h.claims(func(c *Claim) command.Command {
				return command.Fail{Hold: h.holdOf(c), Permanent: true, Error: strings.Repeat("the other side did not answer ", 10)}
			})
		}},
		{"evicted, claimed and completed one by one", func(int) record.NewTask { return record.NewTask{Params: params(256)} }, func(h *measured) {
			h.claimsEach(1, func(c *Claim) command.Command { return command.Complete{Hold: h.holdOf(c)} })
			for h.m.EndedBytes() > 0 {
				h.apply(command.Evict{})
			}
		}},
		{"evicted", func(i int) record.NewTask {
			return record.NewTask{Params: params(256), Key: fmt.Sprintf("key-%012d", i)}
		}, func(h *measured) {
			h.claims(func(c *Claim) command.Command { return command.Complete{Hold: h.holdOf(c)} })
			for h.m.EndedBytes() > 0 {
				h.apply(command.Evict{})
			}
		}},
	} {
		t.Run(shape.name, func(t *testing.T) {
			start := liveHeap()
			h := newMeasured(t)
			h.apply(command.SetLevel{Level: record.FeatureLevel})
			for i := range *memoryTasks / memoryEach {
				submit := command.Submit{}
				for j := range memoryEach {
					task := shape.task(i*memoryEach + j)
					task.Type, task.MaxAttempts = cmp.Or(task.Type, "mail"), cmp.Or(task.MaxAttempts, record.DefaultAttempts)
					submit.Tasks = append(submit.Tasks, task)
				}
				h.apply(submit)
			}
			if shape.then != nil {
				shape.then(h)
			}
			h.compare(start)
		})
	}
}

// One task that is left of each page holds all of the page, and the estimate says
// so. Not parallel: others would be measured, too.
func TestMachine_BytesOfLonelyTasks(t *testing.T) {
	start := liveHeap()
	h := newMeasured(t)
	h.apply(command.SetLevel{Level: record.FeatureLevel})
	pages := *memoryTasks / record.PageSize * 10
	for range pages {
		h.apply(command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: []byte(`{"to":"ada@example.com"}`)}}})
		h.m.header.NextID += record.PageSize - 1 // as if the others were removed
	}
	h.compare(start)
	if all, each := h.m.Bytes()-h.m.trail.Bytes(), int64(record.PageSize*record.PlaceBytes); all < int64(pages)*each {
		t.Errorf("%d pages are estimated at %d bytes", pages, all)
	}
}

// claims claims all tasks and does with each what act says.
func (h *measured) claims(act func(c *Claim) command.Command) { h.claimsEach(memoryEach, act) }

// claimsEach claims all tasks, each of them with one request.
func (h *measured) claimsEach(each int, act func(c *Claim) command.Command) {
	for i := range *memoryTasks / each {
		claims := h.apply(command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail"}, Limit: int32(each), Ascending: true, SortBy: command.SortCreatedAt, RequestID: fmt.Sprintf("request-%014d", i)}).Claims
		for j := range claims {
			if c := act(&claims[j]); c != nil {
				h.apply(c)
			}
		}
	}
}

func (h *measured) holdOf(c *Claim) command.Hold {
	return command.Hold{ID: c.Task.ID, WorkerID: "worker-1", Token: c.Token}
}

// measured is a state whose memory is measured.
type measured struct {
	t     *testing.T
	m     *Machine
	index uint64
	stamp record.Stamp
}

func newMeasured(t *testing.T) *measured {
	m := New()
	m.tasks = record.NewTable[record.Task](record.EncodedTasks{Names: &m.types}, 1) // the last pages cost the same however many tasks there are
	return &measured{t: t, m: m, stamp: record.Stamp{U: 1, T: 1_700_000_000_000}}
}

func (h *measured) apply(cmd command.Command) Result {
	h.t.Helper()
	h.index++
	h.stamp.U++
	h.stamp.T++
	applied, err := h.m.Apply(h.index, command.AppendEntry(nil, h.stamp, cmd))
	if err != nil {
		h.t.Fatal(err)
	}
	return applied.Results[0]
}

// compare checks the estimate against the heap, which had start bytes before.
func (h *measured) compare(start int64) {
	h.t.Helper()
	heap, estimate := liveHeap()-start, h.m.Bytes()
	n := float64(*memoryTasks)
	h.t.Logf("a task takes %.0f bytes by the estimate, %.0f on the heap (%.2f), %.0f of the trail", float64(estimate)/n, float64(heap)/n, float64(estimate)/float64(heap), float64(h.m.trail.Bytes())/n)
	if heap > estimate*11/10+stateBytes || heap < estimate*9/10 {
		h.t.Errorf("an estimate of %d bytes, %d on the heap", estimate, heap)
	}
	runtime.KeepAlive(h.m)
}

// liveHeap returns the bytes that live on the heap.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
