package api

import (
	"time"

	"github.com/claimq/claimq/fsm"
)

// heardWindow is how long a worker without claims is shown after its last
// request.
const heardWindow = 10 * time.Minute

// note remembers who is at work, before its command is proposed: which workers
// this node hears from, and which types they ask for.
func (s *Server) note(cmd fsm.Command, at time.Time) { s.noteOne(cmd, s.clock(at)) }

func (s *Server) noteOne(cmd fsm.Command, now int64) {
	about := fsm.AboutOf(cmd)
	if about.WorkerID != "" {
		s.heard.note(about.WorkerID, now)
	}
	if about.Claims {
		s.noteClaim(about.Claimer, about.Types, now)
	}
	for _, op := range about.Ops {
		s.noteOne(op, now)
	}
}

func (s *Server) noteClaim(workerID string, types []string, now int64) {
	s.asked.note(types, now)
	s.heard.note(workerID, now)
}
