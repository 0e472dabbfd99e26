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
func (s *Server) note(cmd fsm.Command, at time.Time) {
	now := s.clock(at)
	if batch, ok := cmd.(fsm.Batch); ok {
		for _, op := range batch.Ops {
			s.noteOne(op, now)
		}
		return
	}
	s.noteOne(cmd, now)
}

func (s *Server) noteOne(cmd fsm.Command, now int64) {
	switch c := cmd.(type) {
	case fsm.ClaimNext:
		s.noteClaim(&c, now)
	case fsm.ClaimTask:
		s.heard.note(c.WorkerID, now)
	case fsm.Complete:
		s.heard.note(c.WorkerID, now)
		if c.Claim != nil {
			s.noteClaim(c.Claim, now)
		}
	case fsm.Fail:
		s.heard.note(c.WorkerID, now)
	case fsm.Extend:
		s.heard.note(c.WorkerID, now)
	case fsm.Release:
		s.heard.note(c.WorkerID, now)
	}
}

func (s *Server) noteClaim(c *fsm.ClaimNext, now int64) {
	s.asked.note(c.Types, now)
	s.heard.note(c.WorkerID, now)
}
