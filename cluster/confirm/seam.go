package confirm

import (
	"fmt"
	"io"
	"strconv"

	"github.com/hashicorp/raft"
)

// seam is where a follower's log meets its newest snapshot. Raft looks for the entry
// before those that it is sent in the log alone, and finds none if that entry is the
// snapshot's last: it refuses what it could take, is sent the snapshot again, and
// counts on entries that it deletes for it (hashicorp/raft#697, docs/engine/697.md).
// So what comes in passes by here.
type seam struct {
	logs raft.LogStore
	raft engine
}

// engine is what Raft says of its log, on any goroutine.
type engine interface {
	AppliedIndex() uint64
	Stats() map[string]string
}

// LastSnapshot returns index and term of the last entry in Raft's newest snapshot, 0
// for none. It costs some microseconds.
func LastSnapshot(r interface{ Stats() map[string]string }) (index, term uint64) {
	stats := r.Stats()
	index, _ = strconv.ParseUint(stats["last_snapshot_index"], 10, 64)
	term, _ = strconv.ParseUint(stats["last_snapshot_term"], 10, 64)
	return index, term
}

// follows returns args as Raft judges it rightly: entries that follow the snapshot
// directly are sent as if they followed nothing. Raft compares them with those that
// it has, and takes the others. And it is told of nothing committed that args do not show.
//
// It may be decided while Raft takes over a later snapshot. Then the log has
// no entry to compare the first one with, and Raft refuses.
func (s *seam) follows(args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	args = shown(args)
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
	judged := *args
	judged.PrevLogEntry, judged.PrevLogTerm = 0, 0
	return &judged
}

// shown returns args with a commit index that is not above the last entry that args show,
// of their own or before these. Raft takes all of its log up to the index that it is told
// for committed, also what args say nothing of: entries of an earlier leader's, perhaps,
// that nobody else has. And a leader reads how far it has committed after it has read
// where its log ends.
func shown(args *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	last := args.PrevLogEntry + uint64(len(args.Entries))
	if args.LeaderCommitIndex <= last {
		return args
	}
	judged := *args
	judged.LeaderCommitIndex = last
	return &judged
}

// covers reports whether the state reflects all of the snapshot that args offers. Raft
// would go back to it, and forget what it has acknowledged since.
func (s *seam) covers(args *raft.InstallSnapshotRequest) bool {
	return args.LastLogIndex <= s.raft.AppliedIndex()
}

// has reports whether the last entry of the snapshot that args offers is this node's
// own: its newest snapshot's, or in its log.
func (s *seam) has(args *raft.InstallSnapshotRequest) bool {
	if index, term := LastSnapshot(s.raft); args.LastLogIndex == index {
		return args.LastLogTerm == term
	}
	var log raft.Log
	return s.logs.GetLog(args.LastLogIndex, &log) == nil && log.Term == args.LastLogTerm
}

// answerCovered answers an offer of a snapshot that the state covers, without taking
// it: "taken" if its last entry is this node's, else with an error. beat has Raft judge
// the leader and its term by a heartbeat of the same; its error is the answer, too.
func (s *seam) answerCovered(rpc raft.RPC, args *raft.InstallSnapshotRequest, beat func(*raft.AppendEntriesRequest) (*raft.AppendEntriesResponse, error)) {
	has := s.has(args)
	judged, err := beat(&raft.AppendEntriesRequest{RPCHeader: args.RPCHeader, Term: args.Term})
	_, _ = io.Copy(io.Discard, rpc.Reader) // what comes next on the connection lies behind it
	switch {
	case err != nil:
		rpc.Respond(nil, err)
	case judged.Success && !has:
		rpc.Respond(nil, fmt.Errorf("the snapshot of entry %d lies behind what this node has applied, and it does not know that entry any more", args.LastLogIndex))
	default:
		rpc.Respond(&raft.InstallSnapshotResponse{Term: judged.Term, Success: judged.Success}, nil)
	}
}
