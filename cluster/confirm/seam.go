package confirm

import (
	"fmt"
	"io"
	"strconv"

	"github.com/hashicorp/raft"
)

// seam is where a follower's log meets its newest snapshot. Raft looks for the entry before
// those that it receives only in the log. If that entry is the snapshot's last, it finds
// none: it refuses entries that it could take, is sent the snapshot again, and counts on
// entries that it deletes for it (hashicorp/raft#697, docs/engine/697.md). So incoming
// messages pass through here.
type seam struct {
	logs raft.LogStore
	raft engine
}

// engine is the part of Raft's state that any goroutine may read.
type engine interface {
	AppliedIndex() uint64
	Stats() map[string]string
}

// LastSnapshot returns index and term of the last entry in Raft's newest snapshot, 0 for
// none. It takes some microseconds.
func LastSnapshot(r interface{ Stats() map[string]string }) (index, term uint64) {
	stats := r.Stats()
	index, _ = strconv.ParseUint(stats["last_snapshot_index"], 10, 64)
	term, _ = strconv.ParseUint(stats["last_snapshot_term"], 10, 64)
	return index, term
}

// adapt returns args in a form that Raft handles correctly: entries that directly follow the
// snapshot are passed on as if they followed nothing. Raft compares them with those that it
// has and takes the others. The commit index is limited to the entries in args.
//
// Raft may take over a later snapshot concurrently. Then the log has no entry to compare
// the first one with, and Raft refuses.
func (s *seam) adapt(args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	args = limitCommit(args)
	if args.PrevLogEntry == 0 {
		return args
	}
	if first, err := s.logs.FirstIndex(); err != nil || first != args.PrevLogEntry+1 {
		return args
	}
	index, term := LastSnapshot(s.raft)
	if args.PrevLogEntry != index || args.PrevLogTerm != term {
		return args
	}
	adapted := *args
	adapted.PrevLogEntry, adapted.PrevLogTerm = 0, 0
	return &adapted
}

// limitCommit returns args with a commit index not above the last entry in args or before them.
// Raft takes its whole log up to the reported index as committed, even entries that args do
// not cover, which may come from an earlier leader and be nowhere else. And a leader reads
// how far it has committed after it has read where its log ends.
func limitCommit(args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	last := args.PrevLogEntry + uint64(len(args.Entries))
	if args.LeaderCommitIndex <= last {
		return args
	}
	limited := *args
	limited.LeaderCommitIndex = last
	return &limited
}

// covers reports whether the state already reflects all of the offered snapshot. Raft would
// go back to it and forget what it has acknowledged since.
func (s *seam) covers(args *raft.InstallSnapshotRequest) bool {
	return args.LastLogIndex <= s.raft.AppliedIndex()
}

// has reports whether the last entry of the offered snapshot is this node's own: its newest
// snapshot's, or one in its log.
func (s *seam) has(args *raft.InstallSnapshotRequest) bool {
	if index, term := LastSnapshot(s.raft); args.LastLogIndex == index {
		return args.LastLogTerm == term
	}
	var log raft.Log
	return s.logs.GetLog(args.LastLogIndex, &log) == nil && log.Term == args.LastLogTerm
}

// answerCovered answers an offer of a snapshot that the state covers without taking it:
// with success if its last entry is this node's, else with an error. beat has Raft judge
// the leader and its term by a heartbeat; an error of it is the answer, too.
func (s *seam) answerCovered(rpc raft.RPC, args *raft.InstallSnapshotRequest, beat func(*raft.AppendEntriesRequest) (*raft.AppendEntriesResponse, error)) {
	has := s.has(args)
	judged, err := beat(&raft.AppendEntriesRequest{RPCHeader: args.RPCHeader, Term: args.Term})
	_, _ = io.Copy(io.Discard, rpc.Reader) // skip it, because the next message follows on the connection
	switch {
	case err != nil:
		rpc.Respond(nil, err)
	case judged.Success && !has:
		rpc.Respond(nil, fmt.Errorf("the snapshot of entry %d lies behind what this node has applied, and it does not know that entry any more", args.LastLogIndex))
	default:
		rpc.Respond(&raft.InstallSnapshotResponse{Term: judged.Term, Success: judged.Success}, nil)
	}
}
