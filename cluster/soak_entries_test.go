package cluster

import (
	"hash/maphash"
	"runtime"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
)

// soakEntries knows every entry that was ever written to a disk of the cluster: entries
// with the same index and term must be the same (Raft's log matching). The zero value is
// ready to use.
type soakEntries struct {
	mu   sync.Mutex
	seed maphash.Seed
	sums map[soakPlace]soakEntry // guarded by mu
	fail func(format string, args ...any)
}

type soakPlace struct{ index, term uint64 }

type soakEntry struct {
	sum    uint64
	kind   raft.LogType
	writer string
}

// note checks entries that the node named writer has written.
func (e *soakEntries) note(writer string, logs []*raft.Log) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sums == nil {
		e.seed, e.sums = maphash.MakeSeed(), make(map[soakPlace]soakEntry)
	}
	for _, l := range logs {
		at := soakPlace{l.Index, l.Term}
		now := soakEntry{sum: maphash.Bytes(e.seed, l.Data), kind: l.Type, writer: writer}
		before, ok := e.sums[at]
		if !ok {
			e.sums[at] = now
			continue
		}
		if before.sum != now.sum || before.kind != now.kind {
			e.fail("entry %d of term %d is %v at %s and %v at %s", l.Index, l.Term, before.kind, before.writer, now.kind, now.writer)
		}
	}
}

// noteStable checks that the node named writer sets term and vote where Raft may: in its
// main loop, and when it is made. Outside the loop they would change under a leader
// (hashicorp/raft#695).
func (e *soakEntries) noteStable(writer, key string) {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	var by []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case strings.HasSuffix(f.Function, "raft.(*Raft).run"), strings.HasSuffix(f.Function, "raft.NewRaft"),
			strings.HasSuffix(f.Function, "raft.(*Raft).BootstrapCluster"), strings.HasSuffix(f.Function, "raft.BootstrapCluster"),
			strings.HasSuffix(f.Function, "raft.(*Raft).liveBootstrap"), strings.HasSuffix(f.Function, "cluster.(*stores).undoBootstrap"):
			return
		}
		by = append(by, f.Function)
	}
	e.fail("%s sets %s beside Raft's main loop: %s", writer, key, strings.Join(by, " < "))
}
