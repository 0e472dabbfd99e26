package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/internal/pause"
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
func (n *Node) compareAt(p replica.ChainPoint) *comparison {
	return &comparison{at: p, chains: map[string]string{n.uuid: p.String()}}
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
func (c *comparison) describe(n *Node, members []raft.Server) string {
	said := make([]string, 0, len(members))
	for _, s := range members {
		chain := c.chains[string(s.ID)]
		if chain == "" {
			chain = "has not said"
		}
		said = append(said, n.nameOfMember(string(s.ID))+" "+chain)
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// doubt is the reason why a leader does not serve.
type doubt struct {
	text    string // continues "this node"
	divided bool   // because the voters differ, not because answers are missing
}

// agree returns true once a majority of the voters has confirmed that it applied the same
// as this node up to the point at or a later one. It returns false when the scope ends, or
// when a majority has applied something else: then this node stops. Until it returns true
// this node must not answer anything, however long that takes.
func (l *leadership) agree(at replica.ChainPoint) bool {
	n := l.node
	if n.raft == nil || n.call == nil {
		return true
	}
	for wait := agreeAskMin; ; wait = min(2*wait, agreeAskMax) {
		c, voters := l.compareVoters(at, wait)
		if l.ctx.Err() != nil {
			return false
		}
		switch a, majority := c.accord(voters); {
		case a == agreed:
			if l.doubt.Swap(nil) != nil {
				n.logger.Info("a majority of the voters has applied the same as this node", "index", c.at.Index, "term", l.term)
			}
			l.tellDiffering(c)
			return true
		case a == outvoted:
			l.yield(c, majority)
			return false
		case wait == agreeAskMax:
			l.hold(c, voters, a)
		}
		if !pause.For(l.ctx, wait/agreePausePart) {
			return false
		}
		// Ask about the newest point, because a voter that got a snapshot in the meantime
		// no longer knows older ones.
		at = n.fsm.NewestChain()
	}
}

// compareVoters asks the voters for their chains until the result is clear, at most for
// wait.
func (l *leadership) compareVoters(at replica.ChainPoint, wait time.Duration) (*comparison, []raft.Server) {
	n := l.node
	c, voters := n.compareAt(at), n.votersNow()
	ctx, cancel := context.WithTimeout(l.ctx, wait)
	defer cancel()
	n.eachStatus(ctx, voters, statusQuestion{ChainAt: at.Index}, func(i int, status peerStatus, err error) bool {
		if err == nil {
			c.note(string(voters[i].ID), status.Chain)
		}
		a, _ := c.accord(voters)
		return a == undecided || a == divided
	})
	return c, voters
}

// votersNow returns the voters of Raft's latest configuration, including this node if it is
// one.
func (n *Node) votersNow() []raft.Server {
	var voters []raft.Server // a new slice, because that of servers belongs to Raft
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s)
		}
	}
	return voters
}

// hold records why this leader does not serve, and logs it once.
func (l *leadership) hold(c *comparison, voters []raft.Server, a accord) {
	n := l.node
	d := &doubt{divided: a == divided, text: fmt.Sprintf("leads and waits until a majority of the voters says what it has applied up to log entry %d (%s)",
		c.at.Index, c.describe(n, voters))}
	if d.divided {
		d.text = fmt.Sprintf("leads and answers nothing: the voters have applied different things, and no majority the same, up to log entry %d (%s): "+
			"start the voters that are down; if there are none, decide which node's data to keep, stop all, and run claimq cluster recover on its folder "+
			"(docs/operations.md, No majority has the same data)", c.at.Index, c.describe(n, voters))
	}
	before := l.doubt.Swap(d)
	if before == nil || before.divided != d.divided {
		n.logger.Error("this node "+d.text, "term", l.term)
	}
}

// judge acts on the members' answers while this node serves.
func (l *leadership) judge(c *comparison) {
	n := l.node
	switch a, majority := c.accord(n.votersNow()); a {
	case agreed:
		l.tellDiffering(c)
	case outvoted:
		l.yield(c, majority)
	case divided:
		// A new scope serves once a majority agrees.
		n.logger.Error("voters have applied different things: serving only once a majority agrees",
			"index", c.at.Index, "chains", c.describe(n, n.servers()))
		l.refuse()
		n.start(func() {
			select {
			case n.doubted <- l:
			case <-n.ctx.Done():
			}
		})
	case undecided:
		// Raft itself checks that there is a majority.
	}
}

// tellDiffering tells the members that differ from the majority to stop.
func (l *leadership) tellDiffering(c *comparison) {
	n := l.node
	majority := majorityState{Index: c.at.Index, Chain: c.at.String()}
	for _, uuid := range c.differing() {
		n.logger.Error("a node has applied something else than the majority",
			"node_id", n.nameOfMember(uuid), "uuid", uuid, "index", c.at.Index, "chain", c.chains[uuid], "majority", majority.Chain)
		l.tellMajority(uuid, majority)
	}
}

// tellMajority tells a member what the majority has.
func (l *leadership) tellMajority(uuid string, majority majorityState) {
	n := l.node
	servers := n.servers()
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == uuid })
	if at < 0 {
		return // it was removed
	}
	ctx, cancel := context.WithTimeout(l.ctx, hashAskTimeout)
	defer cancel()
	if _, err := ask[struct{}](ctx, n, string(servers[at].Address), callDiffer, majority); err != nil {
		n.logger.Error("the node was not told", "uuid", uuid, "error", err)
	}
}

// yield stops this leader, which has applied something else than the majority. It answers
// nothing from here on.
func (l *leadership) yield(c *comparison, majority string) {
	n := l.node
	l.refuse()
	n.logger.Error("this node has applied something else than the majority", "index", c.at.Index, "chain", c.at.String(), "majority", majority)
	n.handOver(n.ctx)
	n.cfg.Fatal(chainDiffers(c.at.Index, c.at.String(), majority))
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
func (n *Node) answerDiffer(_ context.Context, body []byte) ([]byte, error) {
	majority, err := peer.ReadQuestion[majorityState](body)
	if err != nil {
		return nil, err
	}
	hash, chain := n.notes.at(majority.Index).Hash, n.fsm.ChainAt(majority.Index)
	switch {
	case chain != "" && majority.Chain != "" && chain != majority.Chain:
		n.start(func() { n.cfg.Fatal(chainDiffers(majority.Index, chain, majority.Chain)) })
	case hash != "" && majority.Hash != "" && hash != majority.Hash:
		n.start(func() { n.cfg.Fatal(stateDiffers(majority.Index, hash, majority.Hash)) })
	}
	return []byte("{}"), nil
}

// differsAdvice says what to do with a node that differs from the majority.
const differsAdvice = "check the machine, remove the node from the cluster and join it again with an empty data folder (docs/operations.md, A node differs)"

func stateDiffers(index uint64, own, majority string) error {
	return fmt.Errorf("this node's state at index %d has the hash %s, a majority of the cluster has %s: its memory or disk is faulty, or this is a bug; %s",
		index, own, majority, differsAdvice)
}

func chainDiffers(index uint64, own, majority string) error {
	return fmt.Errorf("this node has applied something else than a majority of the cluster: up to log entry %d its chain is %s, theirs %s; "+
		"its log is damaged, or this is a bug; %s", index, own, majority, differsAdvice)
}
