package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// startRetryInterval is the interval at which a node asks again those that have not
	// answered, until a majority has; startTellInterval the one at which it tells the others
	// after that.
	startRetryInterval = 100 * time.Millisecond
	startTellInterval  = 5 * time.Second
	startAskTimeout    = time.Second
	startLogInterval   = 10 * time.Second
)

// startProof proves that a node's data folder is no old copy.
type startProof struct {
	uuid    string // of the node
	dir     *storage.Dir
	gate    *confirm.VoteGate
	members startMembers
	// ask tells the node at a peer address of s; moved is called with a member's reported
	// address.
	ask    func(ctx context.Context, addr string, s storage.Start) (startAnswer, error)
	moved  func(uuid, addr string)
	clock  ClockSource
	fatal  func(error)
	logger hclog.Logger

	tellInterval time.Duration
}

// startMembers are the members as the node knows them, including itself.
type startMembers interface {
	findMembers(ctx context.Context)
	knownAddrs() []string // of the others
	servers() []raft.Server
	// electorate returns the voters or, until the node is known to be a member, those who made
	// it one.
	electorate() []raft.Server
	isServer(uuid string) bool
	nameOfMember(uuid string) string
	// other returns the address where another process answers as this node, or "".
	other(ctx context.Context) (addr string)
	// inDoubt reports whether the node hears no leader, or is not where the cluster has it.
	inDoubt() bool
}

// run lets this node vote once a majority of the voters, including itself, has confirmed that
// it knows no later start of this node than the data folder does, and has recorded this one.
// If one knows a later start, the folder is an earlier copy: it lacks what the node has
// acknowledged and voted since, so the node ends.
//
// The same applies to a folder without data: it may be a copy from before this node had any,
// of a member that has voted and acknowledged since.
//
// The folder's own start is increased only after no voter knew a later one than the last, so
// that an old copy that is started again and again stays an old copy. It is not increased
// either while another process runs as this node, because the new start would supersede that
// one: instead, this node ends.
//
// Until ctx ends it keeps telling those that have not answered, and nodes that join later,
// because a node that was not told cannot recognize an old copy. One of them may also know a
// later start. While this node hears no leader it asks all again: it may have been stopped
// while a copy of its folder was started, and the nodes that were told of that no longer
// accept its Raft.
func (p *startProof) run(ctx context.Context) {
	if !p.tell(ctx, p.dir.Identity().Start) {
		return
	}
	if addr := p.members.other(ctx); addr != "" {
		p.fatal(fmt.Errorf("%w: it answers at %s, where the cluster has this node: go on with that one, or start this one as a new node, over an empty data folder",
			ErrCopyBeside, addr))
		return
	}
	if err := p.dir.BeginStart(); err != nil {
		p.fatal(err)
		return
	}
	if !p.tell(ctx, p.dir.Identity().Start) {
		return
	}
	p.gate.Open()
	noted := make(map[string]bool)
	for pause.For(ctx, p.tellInterval) {
		if !p.unnoted(noted) && !p.members.inDoubt() {
			continue
		}
		if err := p.askAll(ctx, p.dir.Identity().Start, noted); err != nil && ctx.Err() == nil {
			p.fatal(err)
			return
		}
	}
}

// tell tells the others of s until a majority of the voters has recorded it. It returns false
// if ctx ended or the folder is an old copy.
func (p *startProof) tell(ctx context.Context, s storage.Start) bool {
	noted := map[string]bool{p.uuid: true}
	var loggedAt time.Duration
	for began := p.clock.Mono(); ; {
		if !p.majorityIn(noted) {
			if err := p.askAll(ctx, s, noted); err != nil {
				if ctx.Err() == nil {
					p.fatal(err)
				}
				return false
			}
		}
		if p.majorityIn(noted) {
			return ctx.Err() == nil
		}
		if now := p.clock.Mono(); now-max(began, loggedAt) >= startLogInterval {
			loggedAt = now
			p.logger.Warn("waiting for a majority of the voters: this node neither votes nor leads until they have said that its data folder is no old copy",
				"answered", len(noted)-1)
		}
		if !pause.For(ctx, startRetryInterval) {
			return false
		}
	}
}

// askAll tells all nodes not in noted of s, concurrently, and adds those that have recorded
// it. Errors: ErrOldCopy.
func (p *startProof) askAll(ctx context.Context, s storage.Start, noted map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, startAskTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards noted and errs
	var errs []error
	p.members.findMembers(ctx)
	for _, addr := range p.members.knownAddrs() {
		wg.Go(func() {
			answer, err := p.ask(ctx, addr, s)
			if err != nil {
				p.logger.Debug("a member was not told of this start", "peer_addr", addr, "error", err)
				return
			}
			if answer.UUID == p.uuid || !p.members.isServer(answer.UUID) {
				return
			}
			for uuid, at := range answer.Whereabouts {
				if p.members.isServer(uuid) {
					p.moved(uuid, at)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if answer.Latest.Supersedes(s) {
				errs = append(errs, p.oldCopy(s, answer, addr))
				return
			}
			noted[answer.UUID] = true
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// majorityIn reports whether a majority of the voters is in nodes.
func (p *startProof) majorityIn(nodes map[string]bool) bool {
	voters, among := p.members.electorate(), 0
	for _, s := range voters {
		if nodes[string(s.ID)] {
			among++
		}
	}
	return among > len(voters)/2
}

// unnoted reports whether some member is not in nodes.
func (p *startProof) unnoted(nodes map[string]bool) bool {
	for _, s := range p.members.servers() {
		if string(s.ID) != p.uuid && !nodes[string(s.ID)] {
			return true
		}
	}
	return false
}

func (p *startProof) oldCopy(s storage.Start, answer startAnswer, addr string) error {
	known := fmt.Sprintf("start %d of this node, and %s is of start %d", answer.Latest.Number, p.dir.Path(), s.Number)
	if answer.Latest.Number == s.Number {
		known = fmt.Sprintf("another start %d of this node than %s is of", s.Number, p.dir.Path())
	}
	return fmt.Errorf("%w: node %s at %s was told of %s: what this node acknowledged and voted since is not in it, so it must not take part. "+
		"If the newer folder is still there, start the node over that. Else remove the node (`claimq cluster remove %s`), move %s away, and start it again with --join, as a new node",
		ErrOldCopy, p.members.nameOfMember(answer.UUID), addr, known, p.dir.Identity().NodeID, p.dir.Path())
}

// callStart is the call with which a node tells others of its start. A node that is starting
// itself answers once it knows its members; that needs no answer of others, so all nodes may
// start at the same time.
const callStart = "start" // start → startAnswer

// ErrOldCopy is returned when another node knows a later start of this node than its data
// folder does.
var ErrOldCopy = errors.New("the data folder is an old copy")

// ErrCopyBeside is returned when another process already runs as this node over a copy of its
// data folder.
var ErrCopyBeside = errors.New("another process runs over a copy of the data folder")

// startAnswer is the answer to being told of a start.
type startAnswer struct {
	UUID string `json:"uuid"` // of the answering node
	// Latest is the latest start that the answering node knows: the one it was told now, or
	// one that supersedes it.
	Latest storage.Start `json:"latest"`
	// Whereabouts are the reported peer addresses of other nodes, by UUID, because a node that
	// has moved may not know where the others are now.
	Whereabouts map[string]string `json:"whereabouts,omitempty"`
}

// superseded returns an error if a process of a member must not exchange Raft messages,
// because a later start of that node is known, whose promises the process does not know. Its
// votes and acknowledgements then count for nothing, even before it has heard of the other
// process.
func superseded(s *storage.Starts, process peer.Hello) error {
	of := storage.Start{Number: process.StartNumber, Nonce: process.StartNonce}
	latest := s.Latest(process.UUID)
	if of.Number == 0 || !latest.Supersedes(of) {
		return nil
	}
	return fmt.Errorf("node %q is of start %d, and this node was told of a later one over a copy of its data folder, start %d", process.NodeID, of.Number, latest.Number)
}

// serveStarts answers the calls of starting nodes on the port of node self. Before it answers,
// it closes Raft's connections with processes of earlier starts.
func serveStarts(port *peer.Port, s *storage.Starts, self string) {
	port.Handle(callStart, func(_ context.Context, from peer.Hello, body []byte) ([]byte, error) {
		told, err := peer.ReadQuestion[storage.Start](body)
		if err != nil {
			return nil, err
		}
		latest, err := s.Note(from.UUID, told)
		if err != nil {
			return nil, err
		}
		port.Recheck(from.UUID)
		return json.Marshal(startAnswer{UUID: self, Latest: latest, Whereabouts: port.Whereabouts().All()})
	})
}
