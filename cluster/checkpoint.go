package cluster

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// checkpointInterval is how often the leader has the states compared.
	checkpointInterval = time.Minute
	// hashNotesMax is how many checkpoints a node remembers.
	hashNotesMax = 16
	// hashAskTimeout bounds one question for a hash, hashAskMax their number: a
	// follower may lag, and hashing a large state takes seconds.
	hashAskTimeout = 2 * time.Second
	hashAskMax     = 45
	// hashRest is how long hashing rests after some 0.3 ms of it: 1,000,000 tasks take
	// 2.5 s the first time. In one go the three nodes of a machine with two cores
	// answered nothing for 0.3 s of it.
	hashRest = 2 * time.Millisecond
)

// hashNotes are the hashes of this node's state at the last checkpoints. The
// command carries none: each node notes its own.
type hashNotes struct {
	mu    sync.Mutex
	notes []hashAnswer // oldest first
}

type hashQuestion struct {
	Index uint64 `json:"index"`
}

// hashAnswer is the hash of the state at index; Hash "" = not known (yet).
type hashAnswer struct {
	Index uint64 `json:"index"`
	Hash  string `json:"hash"`
}

func (h *hashNotes) add(a hashAnswer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, a)
	if len(h.notes) > hashNotesMax {
		h.notes = append(h.notes[:0], h.notes[1:]...)
	}
}

func (h *hashNotes) at(index uint64) hashAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.notes {
		if a.Index == index {
			return a
		}
	}
	return hashAnswer{Index: index}
}

// noteHashes hashes the states captured at checkpoints, beside Apply: what changed
// since the one before, and a part of the rest. It takes no rests while it is hurried,
// as another state is to replace the one that it keeps in memory.
func (n *Node) noteHashes(ctx context.Context, hurried func() bool) {
	hasher := fsm.NewHasher(func() {
		if !hurried() {
			pause.For(ctx, hashRest)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-n.fsm.Captured:
			hash, rotten := hasher.Hash(s)
			if rotten > 0 {
				// The comparison decides about it.
				n.logger.Error("a part of the state changed, and no command changed it: the memory is faulty, or this is a bug",
					"index", s.Index(), "pages", rotten)
			}
			n.notes.add(hashAnswer{Index: s.Index(), Hash: hex.EncodeToString(hash[:])})
			s.Release()
		}
	}
}

func (n *Node) answerHash(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[hashQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(n.notes.at(q.Index))
}

// runCheckpoints has the states compared again and again, until the scope ends.
func (l *leadership) runCheckpoints() {
	for pause.For(l.ctx, checkpointInterval) {
		l.start(l.checkpoint)
	}
}

// checkpoint logs a Checkpoint and compares what the voters noted at it. A
// minority that differs from a majority is told to stop; if no hash has a
// majority, nobody stops: it is logged.
func (l *leadership) checkpoint() {
	n := l.node
	p, err := n.batcher.Propose(l.ctx, command.Checkpoint{})
	if err != nil {
		return // the next one comes
	}
	voters := n.votersNow()
	hashes := n.askHashes(l.ctx, voters, p.Index, time.Second)
	majority, ok := majorityOf(hashes, len(voters))
	if !ok {
		if distinct(hashes) > 1 {
			n.logger.Error("the nodes' states differ, and none is that of a majority", "index", p.Index, "hashes", fmt.Sprint(hashes))
		}
		return
	}
	for _, s := range voters {
		hash := hashes[string(s.ID)]
		if hash == "" || hash == majority {
			continue
		}
		n.logger.Error("a node's state differs from the majority's", "uuid", s.ID, "index", p.Index, "hash", hash, "majority", majority)
		if string(s.ID) == n.uuid {
			l.refuse()
			n.handOver(n.ctx)
			n.cfg.Fatal(stateDiffers(p.Index, hash, majority))
			return
		}
		l.tellMajority(string(s.ID), majorityState{Index: p.Index, Hash: majority})
	}
}

// askHashes returns what the nodes noted at index, by UUID, as far as they have
// it in time: they are asked every interval.
func (n *Node) askHashes(ctx context.Context, nodes []raft.Server, index uint64, interval time.Duration) map[string]string {
	hashes := make(map[string]string)
	for range hashAskMax {
		if !pause.For(ctx, interval) {
			break
		}
		for _, s := range nodes {
			id := string(s.ID)
			switch {
			case hashes[id] != "":
			case id == n.uuid:
				hashes[id] = n.notes.at(index).Hash
			default:
				ctx, cancel := context.WithTimeout(ctx, hashAskTimeout)
				answer, err := ask[hashAnswer](ctx, n, string(s.Address), callHash, hashQuestion{Index: index})
				cancel()
				if err == nil && answer.Index == index {
					hashes[id] = answer.Hash
				}
			}
		}
		if known(hashes) == len(nodes) {
			break
		}
	}
	return hashes
}

// known returns how many hashes there are.
func known(hashes map[string]string) int {
	count := 0
	for _, h := range hashes {
		if h != "" {
			count++
		}
	}
	return count
}

// distinct returns how many different hashes there are.
func distinct(hashes map[string]string) int {
	seen := make(map[string]bool)
	for _, h := range hashes {
		if h != "" {
			seen[h] = true
		}
	}
	return len(seen)
}

// majorityOf returns the hash, or chain, that more than half of all voters have.
func majorityOf(hashes map[string]string, voters int) (string, bool) {
	count := make(map[string]int)
	for _, h := range hashes {
		if h != "" {
			count[h]++
		}
	}
	for h, c := range count {
		if c > voters/2 {
			return h, true // at most one can
		}
	}
	return "", false
}

// StateHash returns the index of this node's state and the state's hash, both zero
// while it has none. Nodes at the same index have the same hash.
func (n *Node) StateHash() (index uint64, hash [16]byte) {
	s, err := n.fsm.Capture()
	if err != nil {
		return 0, hash
	}
	defer s.Release()
	return s.Index(), s.Hash()
}

// AppliedIndex returns the log index that this node's state reflects.
func (n *Node) AppliedIndex() uint64 { return n.fsm.AppliedIndex() }

const (
	// hashesTimeout bounds the wait for the nodes' hashes, which are asked for
	// every hashesInterval.
	hashesTimeout  = 4 * time.Second
	hashesInterval = 200 * time.Millisecond
)

// Hashes has every node hash its state at one index of the log, a new one, and
// returns what they say. Errors: fsm.ErrNotLeader, fsm.ErrNoLeader,
// fsm.ErrOverloaded, fsm.ErrShuttingDown; fsm.ErrOutcomeUnknown.
func (n *Node) Hashes(ctx context.Context) (nodes.HashView, error) {
	if _, err := n.serving(); err != nil {
		return nodes.HashView{}, err
	}
	p, err := n.batcher.Propose(ctx, command.Checkpoint{})
	if err != nil {
		return nodes.HashView{}, fmt.Errorf("log a checkpoint: %w", err)
	}
	servers := n.servers()
	asking, cancel := context.WithTimeout(ctx, hashesTimeout)
	defer cancel()
	hashes := n.askHashes(asking, servers, p.Index, hashesInterval)
	view := nodes.HashView{Index: p.Index, Agree: distinct(hashes) <= 1}
	for _, s := range servers {
		view.Nodes = append(view.Nodes, nodes.NodeHash{NodeID: n.nameOfMember(string(s.ID)), Hash: hashes[string(s.ID)]})
	}
	slices.SortFunc(view.Nodes, func(a, b nodes.NodeHash) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return view, nil
}
