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
	// checkpointInterval is the interval at which the leader has the states compared.
	checkpointInterval = time.Minute
	// hashNotesMax is the number of checkpoints that a node remembers.
	hashNotesMax = 16
	// hashAskTimeout bounds one question for a hash, hashAskMax their number, because a
	// follower may lag and hashing a large state takes seconds.
	hashAskTimeout = 2 * time.Second
	hashAskMax     = 45
	// hashRest is the pause after each 0.3 ms of hashing. Hashing 1,000,000 tasks for the
	// first time takes 2.5 s; without pauses, three nodes on a machine with two cores
	// answered nothing for 0.3 s.
	hashRest = 2 * time.Millisecond
)

// hashNotes holds the hashes of this node's state at the last checkpoints. The command does
// not contain the hash; each node notes its own.
type hashNotes struct {
	mu    sync.Mutex
	notes []hashAnswer // oldest first
}

type hashQuestion struct {
	Index uint64 `json:"index"`
}

// hashAnswer is the hash of the state at an index; Hash is "" if unknown (yet).
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

// noteHashes hashes the states captured at checkpoints, concurrently with Apply: what has
// changed since the last one, and a part of the rest. It skips its pauses while hurried
// returns true, because another state is waiting for the captured one's memory.
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
				// The comparison of hashes decides what follows.
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

// runCheckpoints has the states compared periodically until the scope ends.
func (l *leadership) runCheckpoints() {
	for pause.For(l.ctx, checkpointInterval) {
		l.start(l.checkpoint)
	}
}

// checkpoint logs a Checkpoint and compares the hashes of the voters. A minority that
// differs from a majority is told to stop. If no hash has a majority, that is only logged.
func (l *leadership) checkpoint() {
	n := l.node
	p, err := n.batcher.Propose(l.ctx, command.Checkpoint{})
	if err != nil {
		return // the next checkpoint will follow
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

// askHashes asks the nodes every interval for their hash at index, and returns those it
// gets in time, by UUID.
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

// known returns the number of known hashes.
func known(hashes map[string]string) int {
	count := 0
	for _, h := range hashes {
		if h != "" {
			count++
		}
	}
	return count
}

// distinct returns the number of different hashes.
func distinct(hashes map[string]string) int {
	seen := make(map[string]bool)
	for _, h := range hashes {
		if h != "" {
			seen[h] = true
		}
	}
	return len(seen)
}

// majorityOf returns the hash or chain of more than half of all voters.
func majorityOf(hashes map[string]string, voters int) (string, bool) {
	count := make(map[string]int)
	for _, h := range hashes {
		if h != "" {
			count[h]++
		}
	}
	for h, c := range count {
		if c > voters/2 {
			return h, true // at most one can have a majority
		}
	}
	return "", false
}

// StateHash returns the index of this node's state and the state's hash, or zeros while it
// has no state. It is equal on all nodes at the same index.
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
	// hashesTimeout bounds the wait for the nodes' hashes; hashesInterval is the polling
	// interval.
	hashesTimeout  = 4 * time.Second
	hashesInterval = 200 * time.Millisecond
)

// Hashes has every node hash its state at a new index of the log and returns the results.
// Errors: nodes.ErrNotLeader, nodes.ErrNoLeader, nodes.ErrOverloaded,
// nodes.ErrShuttingDown; nodes.ErrOutcomeUnknown.
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
