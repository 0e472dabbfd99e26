package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
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

// callTell is the call by which a node reports an operator's action to the leader: told → {}.
const callTell = "tell"

// operators records in the trail what operators do, and knows who they are by their API keys.
type operators struct {
	*proposals
	find atomic.Pointer[func(key string) (name string, ok bool)] // nil: no operator is known yet
}

// byUnknown is recorded instead of a name that the leader could not find.
const byUnknown = ", with a key that the leader does not know"

// told is an operator's action that another node reports to the leader. The leader
// identifies the owner of Key, because the other node could report any name.
type told struct {
	Kind event.Kind `json:"kind"`
	What string     `json:"what"`
	Key  string     `json:"key,omitempty"` // "" if no key was used
}

// tell records an action here if this node leads, and else through the leader. See Node.Tell.
func (op *operators) tell(ctx context.Context, cmd command.Tell, key string) error {
	if op.closing.Load() {
		return nodes.ErrShuttingDown
	}
	cmd.By, cmd.What = cutTold(cmd.By), cutTold(cmd.What)
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if op.leader.Load() != nil {
		return op.tellHere(ctx, cmd)
	}
	if op.raft == nil {
		return nodes.ErrNoLeader
	}
	addr, id := op.raft.LeaderWithID()
	if id == "" {
		return nodes.ErrNoLeader
	}
	if _, err := ask[struct{}](ctx, op.core, string(addr), callTell, told{Kind: cmd.Kind, What: cmd.What, Key: key}); err != nil {
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

// answerTell records an action for another node, if this one leads. If it was elected but does
// not serve yet, it waits.
func (op *operators) answerTell(ctx context.Context, body []byte) ([]byte, error) {
	t, err := peer.ReadQuestion[told](body)
	if err != nil {
		return nil, err
	}
	cmd := command.Tell{Kind: t.Kind, What: t.What}
	if t.Key != "" {
		by, known := op.operator(t.Key)
		if cmd.By = by; !known {
			cmd.What += byUnknown
		}
	}
	cmd.What = cutTold(cmd.What)
	if err := op.tellHere(ctx, cmd); err != nil {
		return nil, err
	}
	return []byte("{}"), nil
}

// tellHere records an action on this node, which leads, once it serves.
func (op *operators) tellHere(ctx context.Context, cmd command.Command) error {
	for !op.IsLeader() && !op.closing.Load() {
		leads := op.leader.Load() != nil || op.raft != nil && op.raft.State() == raft.Leader
		if !leads || !pause.For(ctx, tellPause) {
			return nodes.ErrNotLeader
		}
	}
	_, err := op.Propose(ctx, cmd)
	return err
}

// operator returns the name of the operator with the API key, or "".
func (op *operators) operator(key string) (name string, ok bool) {
	find := op.find.Load()
	if find == nil {
		return "", false
	}
	if name, ok = (*find)(key); !ok {
		return "", false
	}
	return name, true
}
