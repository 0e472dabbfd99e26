package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// tellTextMax bounds what is told, in bytes, and the name of who did it.
	tellTextMax = 1024
	// tellTimeout bounds telling the leader.
	tellTimeout = 5 * time.Second
)

// Tell tells of an operator's act in the trail, through the leader. Below the
// feature level that knows it, nothing is told. The texts are cut at tellTextMax.
// Errors: fsm.ErrNoLeader, fsm.ErrShuttingDown, fsm.ErrOverloaded (it was not
// told); else it may have been.
func (n *Node) Tell(ctx context.Context, cmd fsm.Tell) error {
	if n.closing.Load() {
		return fsm.ErrShuttingDown
	}
	if fsm.LevelOf(cmd) > n.fsm.level.Load() {
		return nil
	}
	cmd.By, cmd.What = cutTold(cmd.By), cutTold(cmd.What)
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if l := n.leader.Load(); l != nil {
		_, err := n.Propose(ctx, cmd)
		return err
	}
	if n.raft == nil {
		return fsm.ErrNoLeader
	}
	addr, id := n.raft.LeaderWithID()
	if id == "" {
		return fsm.ErrNoLeader
	}
	if _, err := ask[struct{}](ctx, n, string(addr), callTell, cmd); err != nil {
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

// answerTell tells for another node, if this one leads.
func (n *Node) answerTell(ctx context.Context, body []byte) ([]byte, error) {
	var cmd fsm.Tell
	if err := json.Unmarshal(body, &cmd); err != nil {
		return nil, fmt.Errorf("read what to tell: %w", err)
	}
	if !n.IsLeader() {
		return nil, fsm.ErrNotLeader
	}
	cmd.By, cmd.What = cutTold(cmd.By), cutTold(cmd.What)
	if _, err := n.Propose(ctx, cmd); err != nil {
		return nil, err
	}
	return []byte("{}"), nil
}
