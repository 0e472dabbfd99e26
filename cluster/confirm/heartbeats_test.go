package confirm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// fakeFollower follows b in term 7, until it is changed.
type fakeFollower struct {
	state  raft.RaftState
	leader raft.ServerID
	term   uint64
	looks  int
	// look, if not nil, is called before each look at it, with the number of earlier ones.
	look func(looks int)
}

func (f *fakeFollower) looked() {
	if f.look != nil {
		f.look(f.looks)
	}
	f.looks++
}

func (f *fakeFollower) State() raft.RaftState {
	f.looked()
	return f.state
}

func (f *fakeFollower) LeaderWithID() (raft.ServerAddress, raft.ServerID) {
	f.looked()
	return raft.ServerAddress(f.leader), f.leader
}

func (f *fakeFollower) CurrentTerm() uint64 {
	f.looked()
	return f.term
}

func (f *fakeFollower) LastIndex() uint64 {
	f.looked()
	return 50
}

// beatWire is a transport whose heartbeat handler is set.
type beatWire struct {
	raft.Transport
	in     chan raft.RPC
	handle func(raft.RPC)
}

func (w *beatWire) Consumer() <-chan raft.RPC            { return w.in }
func (w *beatWire) SetHeartbeatHandler(h func(raft.RPC)) { w.handle = h }

// testToldInterval is the interval at which the loop is told in the tests.
const testToldInterval = 50 * time.Millisecond

// beatBench puts the tested code between a transport and the loop of a Raft that follows.
type beatBench struct {
	wire *beatWire
	c    *Confirmer
	f    *fakeFollower
}

// newBeatBench must be called in a bubble.
func newBeatBench(t *testing.T) *beatBench {
	t.Helper()
	wire := &beatWire{in: make(chan raft.RPC)}
	b := &beatBench{wire: wire, c: New(wire, Config{HeartbeatTimeout: 10 * testToldInterval}), f: &fakeFollower{state: raft.Follower, leader: "b", term: 7}}
	b.c.Start()
	b.c.SetHeartbeatHandler(func(raft.RPC) { t.Error("Raft's own handler was called") })
	b.c.heartbeats.follow(b.f, nil)
	t.Cleanup(b.c.heartbeats.close)
	return b
}

// beat sends a heartbeat and returns the channel of its answer.
func (b *beatBench) beat(from string, term uint64) <-chan raft.RPCResponse {
	answer := make(chan raft.RPCResponse, 1)
	go b.wire.handle(raft.RPC{
		Command:  &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ID: []byte(from), Addr: []byte(from)}, Term: term},
		RespChan: answer,
	})
	synctest.Wait()
	return answer
}

// inLoop returns the next message for the loop, false if none waits.
func (b *beatBench) inLoop() (raft.RPC, bool) {
	synctest.Wait()
	select {
	case rpc := <-b.c.Consumer():
		return rpc, true
	default:
		return raft.RPC{}, false
	}
}

func answered(answer <-chan raft.RPCResponse) (*raft.AppendEntriesResponse, bool) {
	select {
	case r := <-answer:
		return r.Response.(*raft.AppendEntriesResponse), true
	default:
		return nil, false
	}
}

// Only heartbeats that change nothing are answered outside the loop; the loop answers the
// rest.
func TestHeartbeats_whatIsAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		had    func(f *fakeFollower)
		from   string
		term   uint64
		beside bool
	}{
		{"its leader's", func(*fakeFollower) {}, "b", 7, true},
		{"of a later term", func(*fakeFollower) {}, "b", 8, false},
		{"of an earlier term", func(*fakeFollower) {}, "b", 6, false},
		{"of another leader", func(*fakeFollower) {}, "c", 7, false},
		{"without a sender", func(f *fakeFollower) { f.leader = "" }, "", 7, false},
		{"while it knows no leader", func(f *fakeFollower) { f.leader = "" }, "b", 7, false},
		{"while it stands for election", func(f *fakeFollower) { f.state = raft.Candidate }, "b", 7, false},
		{"while it leads", func(f *fakeFollower) { f.state = raft.Leader }, "b", 7, false},
		{"after the end", func(f *fakeFollower) { f.state = raft.Shutdown }, "b", 7, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBeatBench(t)
				c.had(b.f)
				answer := b.beat(c.from, c.term)
				got, ok := answered(answer)
				if ok != c.beside {
					t.Fatalf("answered beside the loop: %v, want %v", ok, c.beside)
				}
				if ok && (!got.Success || got.Term != 7 || got.LastLog != 50) {
					t.Errorf("the answer is %+v", got)
				}
				rpc, ok := b.inLoop()
				if !ok {
					t.Fatal("the loop hears nothing of it")
				}
				rpc.Respond(&raft.AppendEntriesResponse{Term: 9}, nil)
				got, ok = answered(answer)
				if ok == c.beside {
					t.Errorf("the loop's answer is passed on: %v", ok)
				}
				if ok && got.Term != 9 {
					t.Errorf("passed on is %+v", got)
				}
				if _, more := b.inLoop(); more {
					t.Error("the loop gets it twice")
				}
			})
		})
	}
}

// Raft may change its term between any two looks at it. A heartbeat is answered in a term
// only if Raft was still in it after the heartbeat came; and nothing is set in any case.
func TestHeartbeats_termChangesMeanwhile(t *testing.T) {
	t.Parallel()
	for at := range 5 {
		t.Run(fmt.Sprint("before look ", at), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBeatBench(t)
				votedAt := -1
				b.f.look = func(looks int) {
					if looks == at {
						b.f.state, b.f.leader, b.f.term, votedAt = raft.Candidate, "", 8, looks
					}
				}
				_, ok := answered(b.beat("b", 7))
				// The term is read at the third look.
				if want := votedAt < 0 || votedAt > 2; ok != want {
					t.Errorf("answered beside the loop: %v, want %v", ok, want)
				}
				if rpc, ok := b.inLoop(); !ok || rpc.Command.(*raft.AppendEntriesRequest).Term != 7 {
					t.Errorf("the loop got %v %+v", ok, rpc)
				}
			})
		})
	}
}

// Before Raft runs, its loop gets all heartbeats, because its state is not known yet.
func TestHeartbeats_beforeRaft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBeatBench(t)
		b.c.heartbeats.follow(nil, nil)
		if _, ok := answered(b.beat("b", 7)); ok {
			t.Error("answered by nobody")
		}
		if _, ok := b.inLoop(); !ok {
			t.Error("the loop does not get it")
		}
	})
}

// While the loop hangs only one heartbeat waits for it, no matter how many are answered;
// and a running loop is not told of more than an idle leader sends.
func TestHeartbeats_toldSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBeatBench(t)
		for range 100 {
			if _, ok := answered(b.beat("b", 7)); !ok {
				t.Fatal("not answered while the loop hangs")
			}
			<-time.After(testToldInterval)
		}
		// One is under way, and one waits.
		for range 2 {
			if _, ok := b.inLoop(); !ok {
				t.Fatal("nothing waits for the loop")
			}
		}
		if _, ok := b.inLoop(); ok {
			t.Error("more than one waits for the loop")
		}
		if got := time.Since(b.c.heartbeats.lastAnswered()); got != testToldInterval {
			t.Errorf("last answered %v ago", got)
		}
		told := 0
		for range 1000 {
			if _, ok := answered(b.beat("b", 7)); !ok {
				t.Fatal("not answered")
			}
			if _, ok := b.inLoop(); ok {
				told++
			}
			<-time.After(testToldInterval / 100)
		}
		if told < 10 || told > 11 {
			t.Errorf("told %d times of 1,000 heartbeats in ten intervals", told)
		}
	})
}

// Incoming messages reach the loop unchanged, each once.
func TestHeartbeats_passesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBeatBench(t)
		const count = 100
		go func() {
			for i := range count {
				b.wire.in <- raft.RPC{Command: i}
			}
		}()
		for i := range count {
			if rpc := <-b.c.Consumer(); rpc.Command != i {
				t.Fatalf("message %v came as number %d", rpc.Command, i)
			}
		}
		if _, ok := b.inLoop(); ok {
			t.Error("there is more than was sent")
		}
	})
}

// Closing ends everything that waits for a loop that has ended. After it, no heartbeat is
// answered from what the previous Raft said.
func TestHeartbeats_close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBeatBench(t)
		later := b.beat("b", 8)
		handled := make(chan struct{})
		go func() {
			b.wire.in <- raft.RPC{Command: "taken over, and never passed on"}
			close(handled)
		}()
		<-handled
		b.c.heartbeats.close()
		b.c.heartbeats.close()
		b.c.heartbeats.follow(b.f, nil)
		for name, answer := range map[string]<-chan raft.RPCResponse{"one that waited": later, "a later one": b.beat("b", 7)} {
			if _, ok := answered(answer); ok {
				t.Errorf("%s was answered", name)
			}
		}
		if _, ok := b.inLoop(); ok {
			t.Error("something reaches the loop")
		}
	}) // waits for all goroutines
}

// The next Raft over the same stores votes once this is closed, so closing must wait
// between a look at the previous Raft and the answer.
func TestHeartbeats_closeWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBeatBench(t)
		b.f.look = func(int) {
			if b.c.heartbeats.mu.TryLock() {
				b.c.heartbeats.mu.Unlock()
				t.Error("it can be closed while a heartbeat is answered")
			}
		}
		if _, ok := answered(b.beat("b", 7)); !ok || b.f.looks != 4 {
			t.Errorf("answered: %v, after %d looks", ok, b.f.looks)
		}
	})
}
