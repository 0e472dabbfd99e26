package cluster

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// agreeAskMin and agreeAskMax bound how long a new leader waits for the voters' answers
	// to a question. The wait grows from one question to the next, so that a voter that is
	// down delays the leader little and distant voters still answer in time.
	agreeAskMin = 50 * time.Millisecond
	agreeAskMax = time.Second
	// agreePausePart is the divisor of that wait for the pause before the next question.
	agreePausePart = 5
)

// callDiffer is the call by which a leader tells a member what the majority has: majorityState → {}.
const callDiffer = "differ"

// agreement compares what the nodes have applied, so that one that differs from the majority
// stops. There are two comparisons. The members' chains, checksums of all entries that they have
// applied, are compared every few seconds; a new leader serves only once a majority has the same.
// The hashes of their states are compared at a checkpoint every minute (checkpoints, below), which
// finds a state that changed without a command.
type agreement struct {
	*statuses
	notes hashNotes
}

// accord is the result of comparing the voters' chains with a leader's.
type accord int

const (
	undecided accord = iota // too few have answered
	agreed                  // a majority, including the leader, has the same chain
	outvoted                // a majority has another chain
	divided                 // some have another chain, but no majority has the same
)

// comparison holds the members' chains at one point of the leader's chain.
type comparison struct {
	at     replica.ChainPoint
	chains map[string]string // by UUID, including the leader's; without members that could not say
}

// compareAt begins a comparison of the members' chains at p.
func (ag *agreement) compareAt(p replica.ChainPoint) *comparison {
	return &comparison{at: p, chains: map[string]string{ag.uuid: p.String()}}
}

// note records a member's answer.
func (c *comparison) note(uuid, chain string) {
	if chain != "" {
		c.chains[uuid] = chain
	}
}

// accord judges by the voters' chains. majority is the chain that a majority of them has,
// or "".
func (c *comparison) accord(voters []raft.Server) (a accord, majority string) {
	chains := make(map[string]string, len(voters))
	for _, s := range voters {
		chains[string(s.ID)] = c.chains[string(s.ID)]
	}
	majority, ok := majorityOf(chains, len(voters))
	switch {
	case majority == c.at.String():
		return agreed, majority
	case ok:
		return outvoted, majority
	}
	for _, chain := range chains {
		if chain != "" && chain != c.at.String() {
			return divided, ""
		}
	}
	return undecided, ""
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

// differing returns the members with another chain than the leader's, sorted.
func (c *comparison) differing() []string {
	var uuids []string
	for _, uuid := range slices.Sorted(maps.Keys(c.chains)) {
		if c.chains[uuid] != c.at.String() {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// describe names the members with their chains.
func (c *comparison) describe(node *core, members []raft.Server) string {
	said := make([]string, 0, len(members))
	for _, s := range members {
		chain := c.chains[string(s.ID)]
		if chain == "" {
			chain = "has not said"
		}
		said = append(said, node.nameOfMember(string(s.ID))+" "+chain)
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// agree returns true once a majority of the voters has confirmed that it applied the same
// as this node up to the point at or a later one; their wall clocks are noted. It returns
// false when the scope ends, or when a majority has applied something else: then this node
// stops. Until it returns true this node must not answer anything, however long that takes.
func (ag *agreement) agree(l *leadership, at replica.ChainPoint) bool {
	if ag.raft == nil || ag.call == nil {
		return true
	}
	for wait := agreeAskMin; ; wait = min(2*wait, agreeAskMax) {
		c, voters := ag.compareVoters(l, at, wait)
		if l.ctx.Err() != nil {
			return false
		}
		switch a, majority := c.accord(voters); {
		case a == agreed:
			if l.doubt.Swap(nil) != nil {
				ag.logger.Info("a majority of the voters has applied the same as this node", "index", c.at.Index, "term", l.term)
			}
			ag.tellDiffering(l, c)
			return true
		case a == outvoted:
			ag.yield(l, c, majority)
			return false
		case wait == agreeAskMax:
			ag.hold(l, c, voters, a)
		}
		if !pause.For(l.ctx, wait/agreePausePart) {
			return false
		}
		// Ask about the newest point, because a voter that got a snapshot in the meantime
		// no longer knows older ones.
		at = ag.fsm.NewestChain()
	}
}

// compareVoters asks the voters for their chains until the result is clear, at most for
// wait.
func (ag *agreement) compareVoters(l *leadership, at replica.ChainPoint, wait time.Duration) (*comparison, []raft.Server) {
	c, voters := ag.compareAt(at), ag.votersNow()
	ctx, cancel := context.WithTimeout(l.ctx, wait)
	defer cancel()
	ag.eachStatus(ctx, voters, statusQuestion{ChainAt: at.Index}, func(i int, status peerStatus, err error) bool {
		if err == nil {
			c.note(string(voters[i].ID), status.Chain)
			l.noteWall(voters[i].ID, &status)
		}
		a, _ := c.accord(voters)
		return a == undecided || a == divided
	})
	return c, voters
}

// hold records why this leader does not serve, and logs it once.
func (ag *agreement) hold(l *leadership, c *comparison, voters []raft.Server, a accord) {
	d := &doubt{divided: a == divided, text: fmt.Sprintf("leads and waits until a majority of the voters says what it has applied up to log entry %d (%s)",
		c.at.Index, c.describe(ag.core, voters))}
	if d.divided {
		d.text = fmt.Sprintf("leads and answers nothing: the voters have applied different things, and no majority the same, up to log entry %d (%s): "+
			"start the voters that are down; if there are none, decide which node's data to keep, stop all, and run claimq cluster recover on its folder "+
			"(docs/operations.md, No majority has the same data)", c.at.Index, c.describe(ag.core, voters))
	}
	before := l.doubt.Swap(d)
	if before == nil || before.divided != d.divided {
		ag.logger.Error("this node "+d.text, "term", l.term)
	}
}

// judge acts on the members' answers while this node serves.
func (ag *agreement) judge(l *leadership, c *comparison) {
	switch a, majority := c.accord(ag.votersNow()); a {
	case agreed:
		ag.tellDiffering(l, c)
	case outvoted:
		ag.yield(l, c, majority)
	case divided:
		// A new scope serves once a majority agrees.
		ag.logger.Error("voters have applied different things: serving only once a majority agrees",
			"index", c.at.Index, "chains", c.describe(ag.core, ag.servers()))
		l.refuse()
		ag.start(func() {
			select {
			case ag.doubted <- l:
			case <-ag.ctx.Done():
			}
		})
	case undecided:
		// Raft itself checks that there is a majority.
	}
}

// tellDiffering tells the members that differ from the majority to stop.
func (ag *agreement) tellDiffering(l *leadership, c *comparison) {
	majority := majorityState{Index: c.at.Index, Chain: c.at.String()}
	for _, uuid := range c.differing() {
		ag.logger.Error("a node has applied something else than the majority",
			"node_id", ag.nameOfMember(uuid), "uuid", uuid, "index", c.at.Index, "chain", c.chains[uuid], "majority", majority.Chain)
		ag.tellMajority(l, uuid, majority)
	}
}

// tellMajority tells a member what the majority has.
func (ag *agreement) tellMajority(l *leadership, uuid string, majority majorityState) {
	servers := ag.servers()
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == uuid })
	if at < 0 {
		return // it was removed
	}
	ctx, cancel := context.WithTimeout(l.ctx, hashAskTimeout)
	defer cancel()
	if _, err := ask[struct{}](ctx, ag.core, string(servers[at].Address), callDiffer, majority); err != nil {
		ag.logger.Error("the node was not told", "uuid", uuid, "error", err)
	}
}

// yield stops this leader, which has applied something else than the majority. It answers
// nothing from here on.
func (ag *agreement) yield(l *leadership, c *comparison, majority string) {
	l.refuse()
	ag.logger.Error("this node has applied something else than the majority", "index", c.at.Index, "chain", c.at.String(), "majority", majority)
	ag.handOver(ag.ctx)
	ag.cfg.Fatal(chainDiffers(c.at.Index, c.at.String(), majority))
}

// majorityState is the hash of the state, or the chain, that a majority of the voters has
// at an index.
type majorityState struct {
	Index uint64 `json:"index"`
	Hash  string `json:"hash,omitempty"`
	Chain string `json:"chain,omitempty"`
}

// answerDiffer learns what a majority has. If this node finds that it differs, it stops for
// good, because it would serve a wrong state or become leader with it.
func (ag *agreement) answerDiffer(_ context.Context, body []byte) ([]byte, error) {
	majority, err := peer.ReadQuestion[majorityState](body)
	if err != nil {
		return nil, err
	}
	hash, chain := ag.notes.at(majority.Index).Hash, ag.fsm.ChainAt(majority.Index)
	switch {
	case chain != "" && majority.Chain != "" && chain != majority.Chain:
		ag.start(func() { ag.cfg.Fatal(chainDiffers(majority.Index, chain, majority.Chain)) })
	case hash != "" && majority.Hash != "" && hash != majority.Hash:
		ag.start(func() { ag.cfg.Fatal(stateDiffers(majority.Index, hash, majority.Hash)) })
	}
	return []byte("{}"), nil
}

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

// callHash is the call by which a leader asks for the hash of a state: hashQuestion → hashAnswer.
const callHash = "hash"

// checkpoints compares the hashes of the states. The leader logs a Checkpoint; every node captures
// its state there, hashes it meanwhile and notes the hash; the leader asks for the notes.
type checkpoints struct{ *agreement }

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
func (cp *checkpoints) noteHashes(ctx context.Context, hurried func() bool) {
	hasher := fsm.NewHasher(func() {
		if !hurried() {
			pause.For(ctx, hashRest)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-cp.fsm.Captured:
			hash, rotten := hasher.Hash(s)
			if rotten > 0 {
				// The comparison of hashes decides what follows.
				cp.logger.Error("a part of the state changed, and no command changed it: the memory is faulty, or this is a bug",
					"index", s.Index(), "pages", rotten)
			}
			cp.notes.add(hashAnswer{Index: s.Index(), Hash: hex.EncodeToString(hash[:])})
			s.Release()
		}
	}
}

func (cp *checkpoints) answerHash(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[hashQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(cp.notes.at(q.Index))
}

// run has the states compared periodically until the scope ends.
func (cp *checkpoints) run(l *leadership) {
	for pause.For(l.ctx, checkpointInterval) {
		l.start(func() { cp.checkpoint(l) })
	}
}

// checkpoint logs a Checkpoint and compares the hashes of the voters. A minority that
// differs from a majority is told to stop. If no hash has a majority, that is only logged.
func (cp *checkpoints) checkpoint(l *leadership) {
	p, err := cp.batcher.Propose(l.ctx, command.Checkpoint{})
	if err != nil {
		return // the next checkpoint will follow
	}
	voters := cp.votersNow()
	hashes := cp.askHashes(l.ctx, voters, p.Index, time.Second)
	majority, ok := majorityOf(hashes, len(voters))
	if !ok {
		if distinct(hashes) > 1 {
			cp.logger.Error("the nodes' states differ, and no state has a majority", "index", p.Index, "hashes", fmt.Sprint(hashes))
		}
		return
	}
	for _, s := range voters {
		hash := hashes[string(s.ID)]
		if hash == "" || hash == majority {
			continue
		}
		cp.logger.Error("a node's state differs from the majority's", "uuid", s.ID, "index", p.Index, "hash", hash, "majority", majority)
		if string(s.ID) == cp.uuid {
			l.refuse()
			cp.handOver(cp.ctx)
			cp.cfg.Fatal(stateDiffers(p.Index, hash, majority))
			return
		}
		cp.tellMajority(l, string(s.ID), majorityState{Index: p.Index, Hash: majority})
	}
}

// askHashes asks the nodes every interval for their hash at index, and returns those it
// gets in time, by UUID.
func (cp *checkpoints) askHashes(ctx context.Context, nodes []raft.Server, index uint64, interval time.Duration) map[string]string {
	hashes := make(map[string]string)
	for range hashAskMax {
		if !pause.For(ctx, interval) {
			break
		}
		for _, s := range nodes {
			id := string(s.ID)
			switch {
			case hashes[id] != "":
			case id == cp.uuid:
				hashes[id] = cp.notes.at(index).Hash
			default:
				ctx, cancel := context.WithTimeout(ctx, hashAskTimeout)
				answer, err := ask[hashAnswer](ctx, cp.core, string(s.Address), callHash, hashQuestion{Index: index})
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

const (
	// hashesTimeout bounds the wait for the nodes' hashes; hashesInterval is the polling
	// interval.
	hashesTimeout  = 4 * time.Second
	hashesInterval = 200 * time.Millisecond
)

// hashes logs a checkpoint and collects the hashes that the nodes note at it. See Node.Hashes.
func (cp *checkpoints) hashes(ctx context.Context) (nodes.HashView, error) {
	if _, err := cp.serving(); err != nil {
		return nodes.HashView{}, err
	}
	p, err := cp.batcher.Propose(ctx, command.Checkpoint{})
	if err != nil {
		return nodes.HashView{}, fmt.Errorf("log a checkpoint: %w", err)
	}
	servers := cp.servers()
	asking, cancel := context.WithTimeout(ctx, hashesTimeout)
	defer cancel()
	hashes := cp.askHashes(asking, servers, p.Index, hashesInterval)
	view := nodes.HashView{Index: p.Index, Agree: distinct(hashes) <= 1}
	for _, s := range servers {
		view.Nodes = append(view.Nodes, nodes.NodeHash{NodeID: cp.nameOfMember(string(s.ID)), Hash: hashes[string(s.ID)]})
	}
	slices.SortFunc(view.Nodes, func(a, b nodes.NodeHash) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return view, nil
}
