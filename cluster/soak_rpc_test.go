package cluster

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
)

// soakKind is a kind of Raft's messages. Each message travels on its own, because two that
// are under way never share a connection.
type soakKind int

const (
	kindHeartbeat soakKind = iota
	kindEntries
	kindVote
	kindTransfer // the request to stand for election now
	kindSnapshot
	soakKinds
)

// soakManner describes what happens to messages of a kind.
type soakManner struct {
	Slow  time.Duration // each is delayed by up to this before it is sent
	Lost  int           // of a thousand: never arrive, and fail at the sender
	Late  int           // of a thousand: arrive, but fail at the sender
	Twice int           // of a thousand: arrive a second time
	By    time.Duration // longest delay of those
}

// soakManners holds the current manner of each kind of message, between all nodes. The zero
// value does no harm.
type soakManners struct {
	mu     sync.Mutex
	random *rand.Rand            // guarded by mu
	of     [soakKinds]soakManner // guarded by mu

	bent atomic.Pointer[string] // name of the node whose entries are bent, nil: none
}

func (s *soakManners) set(of [soakKinds]soakManner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of = of
}

// soakFate describes what happens to one message.
type soakFate struct {
	wait        time.Duration
	lost, twice bool
	late        bool
	by          time.Duration
}

func (s *soakManners) draw(kind soakKind) (f soakFate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of[kind]
	if m.Slow > 0 {
		f.wait = time.Duration(s.random.Int64N(int64(m.Slow)))
	}
	if m.By > 0 {
		f.by = time.Duration(s.random.Int64N(int64(m.By)))
	}
	switch n := s.random.IntN(1000); {
	case n < m.Lost:
		f.lost = true
	case n < m.Lost+m.Late:
		f.late = true
	case n < m.Lost+m.Late+m.Twice:
		f.twice = true
	}
	return f
}

var errSoakLost = errors.New("the message is lost")

// soakTransport is the product's transport with the faults of soakManners.
type soakTransport struct {
	*raft.NetworkTransport
	manners *soakManners
	closed  chan struct{}
	wg      sync.WaitGroup // late messages

	mu    sync.Mutex // held while a message is made late, and while closing
	ended bool       // guarded by mu: closed is closed
}

func newSoakTransport(inner *raft.NetworkTransport, manners *soakManners) *soakTransport {
	return &soakTransport{NetworkTransport: inner, manners: manners, closed: make(chan struct{})}
}

// pause reports whether the transport is still open after d.
func (t *soakTransport) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.closed:
		return false
	}
}

// send sends a message according to its fate. again sends a copy of it, whose answer is
// dropped.
func (t *soakTransport) send(kind soakKind, once, again func() error) error {
	f := t.manners.draw(kind)
	if f.wait > 0 && !t.pause(f.wait) || f.lost {
		return errSoakLost
	}
	if f.late || f.twice {
		t.later(f.by, again)
	}
	if f.late {
		return errSoakLost
	}
	return once()
}

// later calls do after d, unless the transport is closed by then.
func (t *soakTransport) later(d time.Duration, do func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.wg.Go(func() {
		if t.pause(d) {
			_ = do()
		}
	})
}

func (t *soakTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	args = t.manners.bend(target, args)
	kind, copied := kindEntries, *args
	if confirm.IsHeartbeat(args) {
		kind = kindHeartbeat
	}
	return t.send(kind, func() error {
		return t.NetworkTransport.AppendEntries(id, target, args, resp)
	}, func() error {
		return t.NetworkTransport.AppendEntries(id, target, &copied, new(raft.AppendEntriesResponse))
	})
}

func (t *soakTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	copied := *args
	return t.send(kindVote, func() error {
		return t.NetworkTransport.RequestVote(id, target, args, resp)
	}, func() error {
		return t.NetworkTransport.RequestVote(id, target, &copied, new(raft.RequestVoteResponse))
	})
}

func (t *soakTransport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	copied := *args
	return t.send(kindTransfer, func() error {
		return t.NetworkTransport.TimeoutNow(id, target, args, resp)
	}, func() error {
		return t.NetworkTransport.TimeoutNow(id, target, &copied, new(raft.TimeoutNowResponse))
	})
}

// InstallSnapshot may be slow or lost, but never late or twice, because its data can be
// read only once.
func (t *soakTransport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return t.send(kindSnapshot, func() error {
		return t.NetworkTransport.InstallSnapshot(id, target, args, resp, data)
	}, func() error { return nil })
}

// AppendEntriesPipeline returns a pipeline whose messages are as slow as entries. A lost
// one ends it.
func (t *soakTransport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return &soakPipeline{inner, t, target}, nil
}

type soakPipeline struct {
	raft.AppendPipeline
	transport *soakTransport
	target    raft.ServerAddress
}

func (p *soakPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	f := p.transport.manners.draw(kindEntries)
	if f.wait > 0 && !p.transport.pause(f.wait) || f.lost || f.late {
		return nil, errSoakLost
	}
	return p.AppendPipeline.AppendEntries(p.transport.manners.bend(p.target, args), resp)
}

// Close closes the transport. No late messages come from it afterwards.
func (t *soakTransport) Close() error {
	t.mu.Lock()
	if !t.ended {
		t.ended = true
		close(t.closed)
	}
	t.mu.Unlock()
	err := t.NetworkTransport.Close()
	t.wg.Wait()
	return err
}
