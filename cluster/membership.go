package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const (
	// membershipTimeout bounds one change of the membership; changeQueueMax is its part for
	// waiting until Raft has finished the previous change.
	membershipTimeout = 10 * time.Second
	changeQueueMax    = 5 * time.Second
)

// membership changes Raft's configuration and the members' records, one change at a time.
type membership struct {
	*statuses
	changing chan struct{} // capacity 1; holds an element while members change
}

func newMembership(st *statuses) *membership {
	return &membership{statuses: st, changing: make(chan struct{}, 1)}
}

// record logs a node's record if the state has none or a different one.
func (mb *membership) record(l *leadership, r fsm.NodeRecord) {
	if mb.recorded(l, r) {
		return
	}
	unlock, err := mb.lockMembers(l.ctx)
	if err != nil {
		return
	}
	defer unlock()
	mb.recordLocked(l, r)
}

// recorded reports whether the state has the record, ignoring the operator's wish.
func (mb *membership) recorded(l *leadership, r fsm.NodeRecord) bool {
	var have fsm.NodeRecord
	mb.fsm.Read(func(m *fsm.Machine) { have, _ = m.Node(r.UUID) })
	r.Nonvoter = have.Nonvoter
	return have == r || r.NodeID == ""
}

// recordLocked is record for callers that have locked the membership. It keeps the
// operator's wish, which the node itself does not know.
func (mb *membership) recordLocked(l *leadership, r fsm.NodeRecord) {
	if mb.recorded(l, r) {
		return
	}
	mb.fsm.Read(func(m *fsm.Machine) {
		if have, ok := m.Node(r.UUID); ok {
			r.Nonvoter = have.Nonvoter
		}
	})
	if err := l.propose(command.SetNode{Node: r}); err != nil && l.ctx.Err() == nil {
		mb.logger.Warn("node record not written, trying again", "node_id", r.NodeID, "error", err)
	}
}

// lockMembers waits until no other change of the membership is under way here, so that what
// the caller reads then still holds for its own change. Raft could compare the
// configuration's index instead, but raft 1.7.3 does not reveal it: GetConfiguration's is
// always 0. Errors: ctx's cause.
func (mb *membership) lockMembers(ctx context.Context) (unlock func(), err error) {
	select {
	case mb.changing <- struct{}{}:
		return func() { <-mb.changing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// change makes a change of the membership, which the caller has locked, and waits for it.
// It does not return before Raft has accepted or refused the change, because a change that
// still waited for Raft after the lock is released would come after later decisions; only
// then does ctx end the wait. Errors after which nothing has changed:
// *nodes.MembershipRefused, nodes.ErrNotLeader, nodes.ErrOverloaded.
// nodes.ErrOutcomeUnknown if that is unknown.
func (mb *membership) change(ctx context.Context, begin func() raft.IndexFuture) error {
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	taken := make(chan raft.IndexFuture, 1)
	go func() { taken <- begin() }()
	var future raft.IndexFuture
	select {
	case future = <-taken:
	case <-mb.ctx.Done():
		// Raft goes on for a moment, and may accept it.
		return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, errNodeClosed)
	}
	changed := make(chan error, 1)
	go func() { changed <- changeError(future) }()
	select {
	case err := <-changed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, context.Cause(ctx))
	}
}

// changeError waits for a change and translates Raft's error for change. A change without
// an index was never written to the log.
func changeError(change raft.IndexFuture) error {
	err := change.Error()
	switch {
	case err == nil:
		return nil
	case change.Index() != 0:
		return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: another change of the membership is under way: %w", nodes.ErrOverloaded, err)
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%w: %w", nodes.ErrNotLeader, err)
	}
	return &nodes.MembershipRefused{
		Reason: fmt.Sprintf("Raft takes no such configuration: %v", err),
		Advice: "Nothing was changed; see with `claimq cluster status` who the members are, and by which addresses",
	}
}

// lockLeading locks the membership on the leader. Errors: those of notServing,
// nodes.ErrOverloaded.
func (mb *membership) lockLeading(ctx context.Context) (l *leadership, unlock func(), err error) {
	if l, err = mb.serving(); err != nil {
		return nil, nil, err
	}
	if mb.raft == nil {
		return nil, nil, &nodes.MembershipRefused{Reason: "This node runs without Raft", Advice: "It has no other members"}
	}
	unlock, err = mb.lockMembers(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: another change of the membership is under way: %w", nodes.ErrOverloaded, err)
	}
	return l, unlock, nil
}

// wishNonvoter records whether a node should stay without a vote. changed is false if its
// record says so already.
func (mb *membership) wishNonvoter(ctx context.Context, record fsm.NodeRecord, nonvoter bool) (changed bool, err error) {
	mb.fsm.Read(func(m *fsm.Machine) {
		if have, ok := m.Node(record.UUID); ok {
			record = have
		} else {
			record.Nonvoter = false
		}
	})
	if record.Nonvoter == nonvoter {
		return false, nil
	}
	record.Nonvoter = nonvoter
	cmd := command.SetNode{Node: record}
	if _, err := mb.batcher.Propose(ctx, cmd); err != nil {
		return false, err
	}
	return true, nil
}

// memberRecords returns the members' records and the cluster's feature level. A member
// without a record has only its address, and the name in joining if it is that node.
func (mb *membership) memberRecords(joining fsm.NodeRecord) (members []fsm.NodeRecord, level uint32) {
	servers := mb.servers()
	mb.fsm.Read(func(m *fsm.Machine) {
		level = m.Level()
		for _, s := range servers {
			r, ok := m.Node(string(s.ID))
			if !ok {
				r = fsm.NodeRecord{UUID: string(s.ID), PeerAddr: string(s.Address)}
				if r.UUID == joining.UUID {
					r.NodeID = joining.NodeID
				}
			}
			members = append(members, r)
		}
	})
	return members, level
}

// errNoMember refuses a change of a node that is not a member.
type errNoMember struct{ *nodes.MembershipRefused }

// Unwrap returns the refusal.
func (e errNoMember) Unwrap() error { return e.MembershipRefused }

// memberNamed returns the member with that name or UUID, or an errNoMember.
func memberNamed(view nodes.ClusterView, nodeID string) (nodes.NodeView, error) {
	names := make([]string, 0, len(view.Nodes))
	for _, v := range view.Nodes {
		if v.NodeID == nodeID || v.UUID == nodeID {
			return v, nil
		}
		names = append(names, v.NodeID)
	}
	return nodes.NodeView{}, errNoMember{&nodes.MembershipRefused{
		Reason: fmt.Sprintf("No member is named %q", nodeID),
		Advice: "The members are " + strings.Join(names, ", "),
	}}
}
