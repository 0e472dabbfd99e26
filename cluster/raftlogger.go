package cluster

import (
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// raftLogger is Raft's logger. Raft reports a member that does not answer with every call that fails. raftLogger passes on the
// first report about each address, and one line when the member answers again; the rest is logged as Debug.
type raftLogger struct {
	hclog.Logger

	mu     sync.Mutex
	silent map[raft.ServerAddress]bool // members whose silence was reported
}

func newRaftLogger(logger hclog.Logger) *raftLogger {
	return &raftLogger{Logger: logger, silent: map[raft.ServerAddress]bool{}}
}

// silenceMessages are Raft's messages about a member that does not answer, with the argument that names it.
var silenceMessages = map[string]string{
	"failed to heartbeat to":                  "peer",
	"failed to appendEntries to":              "peer",
	"failed to start pipeline replication to": "peer",
	"failed to pipeline appendEntries":        "peer",
	"failed to make requestVote RPC":          "target",
	"failed to contact":                       "", // a heartbeat has failed before
}

func (l *raftLogger) Error(msg string, args ...any) {
	if l.isNews(msg, args) {
		l.Logger.Error(msg, args...)
		return
	}
	l.Debug(msg, args...)
}

func (l *raftLogger) Warn(msg string, args ...any) {
	if l.isNews(msg, args) {
		l.Logger.Warn(msg, args...)
		return
	}
	l.Debug(msg, args...)
}

// isNews reports whether a message is not a repeated one about a member that does not answer.
func (l *raftLogger) isNews(msg string, args []any) bool {
	name, ok := silenceMessages[msg]
	if !ok {
		return true
	}
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] != name {
			continue
		}
		addr, ok := args[i+1].(raft.ServerAddress)
		if server, isServer := args[i+1].(raft.Server); isServer {
			addr, ok = server.Address, true
		}
		if !ok {
			return true
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		before := l.silent[addr]
		l.silent[addr] = true
		return !before
	}
	return name != ""
}

// observe is the filter of an observer of r. It logs members that answer again, and forgets all reports when r's role has
// changed, so that they are passed on again. It returns false, because the observer has no channel.
func (l *raftLogger) observe(r *raft.Raft, o any) bool {
	switch o := o.(type) {
	case raft.ResumedHeartbeatObservation:
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.ID == o.PeerID && l.answers(s.Address) {
				l.Info("a member answers again", "peer", s.Address)
			}
		}
	case raft.RaftState:
		if o == raft.Leader || o == raft.Follower {
			l.mu.Lock()
			clear(l.silent)
			l.mu.Unlock()
		}
	}
	return false
}

// answers notes that the member at addr answers, and reports whether its silence was reported.
func (l *raftLogger) answers(addr raft.ServerAddress) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.silent[addr]
	delete(l.silent, addr)
	return was
}
