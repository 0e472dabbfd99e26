package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// tellTextMax bounds the text that is recorded, and the operator's name, in bytes.
	tellTextMax = 1024
	// tellTimeout bounds telling the leader.
	tellTimeout = 5 * time.Second
	// tellPause is the polling interval while a leader does not serve yet, as happens right
	// after a transfer.
	tellPause = 10 * time.Millisecond
)

// byUnknown is recorded instead of a name that the leader could not find.
const byUnknown = ", with a key that the leader does not know"

// told is an operator's action that another node reports to the leader. The leader
// identifies the owner of Key, because the other node could report any name.
type told struct {
	Kind event.Kind `json:"kind"`
	What string     `json:"what"`
	Key  string     `json:"key,omitempty"` // "" if no key was used
}

// Tell records an operator's action in the trail, through the leader. key is the API key of
// cmd.By, or "". Below the feature level that knows it, nothing is recorded. The texts are
// cut at tellTextMax. Errors after which it was not recorded: nodes.ErrNoLeader,
// nodes.ErrShuttingDown, nodes.ErrOverloaded; after any other it may have been.
func (n *Node) Tell(ctx context.Context, cmd command.Tell, key string) error {
	if n.closing.Load() {
		return nodes.ErrShuttingDown
	}
	if command.LevelOf(cmd) > n.fsm.Level() {
		return nil
	}
	cmd.By, cmd.What = cutTold(cmd.By), cutTold(cmd.What)
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if n.leader.Load() != nil {
		return n.tellHere(ctx, cmd)
	}
	if n.raft == nil {
		return nodes.ErrNoLeader
	}
	addr, id := n.raft.LeaderWithID()
	if id == "" {
		return nodes.ErrNoLeader
	}
	if _, err := ask[struct{}](ctx, n, string(addr), callTell, told{Kind: cmd.Kind, What: cmd.What, Key: key}); err != nil {
		return fmt.Errorf("tell the leader: %w", err)
	}
	return nil
}

// cutTold cuts a text to tellTextMax at a whole character.
func cutTold(text string) string {
	if len(text) <= tellTextMax {
		return text
	}
	return strings.ToValidUTF8(text[:tellTextMax], "")
}

// SetOperators sets the function that returns the operator with an API key. For "" it
// returns ok if there are no keys. Until it is set, no operator is known.
func (n *Node) SetOperators(name func(key string) (name string, ok bool)) { n.operators.Store(&name) }

// answerTell records for another node, if this one leads. It waits for a leader that was
// elected but does not serve yet.
func (n *Node) answerTell(ctx context.Context, body []byte) ([]byte, error) {
	t, err := peer.ReadQuestion[told](body)
	if err != nil {
		return nil, err
	}
	cmd := command.Tell{Kind: t.Kind, What: t.What}
	if t.Key != "" {
		by, known := n.operator(t.Key)
		if cmd.By = by; !known {
			cmd.What += byUnknown
		}
	}
	cmd.What = cutTold(cmd.What)
	if err := n.tellHere(ctx, cmd); err != nil {
		return nil, err
	}
	return []byte("{}"), nil
}

// tellHere records once this node, which leads, serves.
func (n *Node) tellHere(ctx context.Context, cmd command.Command) error {
	for !n.IsLeader() && !n.closing.Load() {
		leads := n.leader.Load() != nil || n.raft != nil && n.raft.State() == raft.Leader
		if !leads || !pause.For(ctx, tellPause) {
			return nodes.ErrNotLeader
		}
	}
	_, err := n.Propose(ctx, cmd)
	return err
}

// operator returns the name of the operator with the API key, or "".
func (n *Node) operator(key string) (name string, ok bool) {
	find := n.operators.Load()
	if find == nil {
		return "", false
	}
	if name, ok = (*find)(key); !ok {
		return "", false
	}
	return name, true
}
