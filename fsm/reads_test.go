package fsm

import (
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Reads change nothing, because they run concurrently under the read lock, and not
// on all nodes.
func TestMachine_ReadsChangeNothing(t *testing.T) {
	t.Parallel()
	for seed := range seeds(20) {
		g := newGenerator(rand.New(rand.NewPCG(seed, 2)).IntN)
		m, s := newSmall(), newModel()
		s.most, s.mostGone = smallMemory, smallMemory
		for i, e := range randomLog(seed, 120) {
			compareEntry(t, m, s, e)
			if i%8 > 0 {
				continue
			}
			before := printOf(m)
			compareReads(t, g, m, s)
			readEach(m, e)
			if printOf(m) != before {
				t.Fatalf("seed %d: behind entry %d reads have changed the machine", seed, e.Index)
			}
		}
	}
}

// A complete that began another claim is repeated. Judging the repeat takes no memory of the machine, which others use at
// the same time.
func TestMachine_JudgeOfClaimsChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	first, second := s.submit(record.NewTask{Type: "mail"}), s.submit(record.NewTask{Type: "mail"})
	s.must(command.ClaimTask{ID: first, WorkerID: "w1"})
	done := command.Complete{Hold: command.Hold{ID: first, WorkerID: "w1", Token: 1}, Claim: &command.ClaimNext{WorkerID: "w1", Limit: 1}}
	s.must(done)
	s.must(command.Complete{Hold: command.Hold{ID: second, WorkerID: "w1", Token: 2}})
	before := printOf(s.m)
	result, ok := s.m.Judge(done, s.Stamp)
	if !ok || !result.Repeated || len(result.Claims) != 1 || result.Claims[0].Task.ID != second {
		t.Fatalf("%+v, %v", result, ok)
	}
	if printOf(s.m) != before {
		t.Error("the look has changed the machine")
	}
}

// Asking what a retry would do forgets no removed task: only the log may do that, or nodes
// would differ.
func TestMachine_LeftAloneForgetsNothing(t *testing.T) {
	t.Parallel()
	steps := &record.NewParent{Steps: []record.NewStep{{Name: "a", Task: record.NewTask{Type: "mail"}}}}
	for name, task := range map[string]record.NewTask{
		"plain":  {Key: "k", UniqueActive: true},
		"parent": {Key: "k", UniqueActive: true, Parent: steps},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			id := s.submit(task)
			s.must(command.Cancel{ID: id})
			s.must(command.Cancel{ID: s.submit(record.NewTask{Key: "k", RetentionMS: record.KeepNone})})
			for _, want := range []Code{CodeKeyTaken, ""} {
				before := printOf(s.m)
				if got := s.m.LeftAlone(s.m.Get(id), command.ActionRetry, 0); got != want {
					t.Errorf("a retry would be refused with %q, want %q", got, want)
				}
				if printOf(s.m) != before {
					t.Error("the look has changed the machine")
				}
				s.wait(goneMS)
				s.must(command.Checkpoint{})
			}
		})
	}
}

// readEach reads what is to be known of each task, also of removed ones.
func readEach(m *Machine, e testEntry) {
	now := e.Stamp
	now.U += goneMS / 2
	for _, c := range e.Commands {
		m.Judge(c, now)
		m.ReachOf(c)
	}
	m.Workers("", 10)
	m.History("", 1, now)
	m.History("mail", record.HistoryMinutes, now)
	m.DefaultsInForce()
	m.Events(event.Query{})
	for id := range m.header.NextID {
		m.TaskEvents(id)
		m.Removed(id)
		m.Steps(id)
		m.Finalization(id, now)
		t := m.Get(id)
		if t == nil {
			continue
		}
		m.InForce(t)
		for _, action := range []command.Action{command.ActionRetry, command.ActionCancel, command.ActionDelete} {
			m.LeftAlone(t, action, 0)
			m.LeftAlone(t, action, 1)
		}
	}
}

// printOf returns a hash of the machine and of all memory that it leads to: another one
// if any of it changed.
func printOf(m *Machine) uint64 {
	p := printer{seen: map[memory]bool{}}
	p.follow(reflect.ValueOf(m))
	for len(p.left) > 0 {
		last := len(p.left) - 1
		next := p.left[last]
		p.left = p.left[:last]
		next()
	}
	return p.sum
}

// memory is an object that a pointer, slice or map leads to.
type memory struct {
	at  unsafe.Pointer
	len int
	of  reflect.Type
}

// printer adds up the hashes of pieces of memory, each once, in any order.
type printer struct {
	sum  uint64
	seen map[memory]bool
	left []func()
}

// printSeed is of all prints that are compared.
var printSeed = maphash.MakeSeed()

// follow adds, once, what v leads to.
func (p *printer) follow(v reflect.Value) {
	if v.IsNil() {
		return
	}
	at := memory{v.UnsafePointer(), 0, v.Type()}
	if v.Kind() != reflect.Pointer {
		at.len = v.Len()
	}
	if p.seen[at] {
		return
	}
	p.seen[at] = true
	p.left = append(p.left, func() {
		switch v.Kind() {
		case reflect.Map:
			for each := v.MapRange(); each.Next(); {
				p.add(at, each.Key(), each.Value())
			}
		case reflect.Slice:
			for i := range v.Len() {
				p.add(at, reflect.ValueOf(i), v.Index(i))
			}
		default:
			p.add(at, v.Elem())
		}
	})
}

// add adds the values that stand at one place of the memory.
func (p *printer) add(at memory, values ...reflect.Value) {
	var h maphash.Hash
	h.SetSeed(printSeed)
	maphash.WriteComparable(&h, uintptr(at.at))
	for _, v := range values {
		p.write(&h, v)
	}
	p.sum += h.Sum64()
}

// write adds the value itself to the hash, and follows where it leads.
func (p *printer) write(h *maphash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		maphash.WriteComparable(h, uintptr(v.UnsafePointer()))
		if v.Kind() != reflect.Pointer {
			maphash.WriteComparable(h, v.Len())
		}
		p.follow(v)
	case reflect.Interface:
		if !v.IsNil() {
			p.write(h, v.Elem())
		}
	case reflect.Func, reflect.UnsafePointer:
		maphash.WriteComparable(h, uintptr(v.UnsafePointer()))
	case reflect.Struct:
		for _, field := range v.Fields() {
			p.write(h, field)
		}
	case reflect.Array:
		for i := range v.Len() {
			p.write(h, v.Index(i))
		}
	case reflect.String:
		h.WriteString(v.String())
		h.WriteByte(0)
	case reflect.Bool:
		maphash.WriteComparable(h, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		maphash.WriteComparable(h, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		maphash.WriteComparable(h, v.Uint())
	default:
		panic("no print of " + v.Type().String())
	}
}
