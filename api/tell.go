package api

import (
	"context"
	"errors"

	"github.com/claimq/claimq/fsm"
)

// tell tells of the request's act, which succeeded, in the trail; what says in a
// few words what was done with what. That it could not be told is logged: the act
// stands.
func (r *request) tell(kind fsm.EventKind, what string) {
	r.server.tell(fsm.Tell{Kind: kind, By: r.by(), What: what})
}

// tell is request.tell of an act that no request waits for any more. The node
// bounds how long it takes.
func (s *Server) tell(cmd fsm.Tell) {
	if err := s.node.Tell(context.Background(), cmd); err != nil {
		s.logger.Warn("an operator's act is not in the trail", "event", cmd.Kind.String(), "what", cmd.What, "by", cmd.By, "error", err)
	}
}

// by returns the name of the key that the request came with, "" in open mode.
func (r *request) by() string { return r.key }

// unsigned takes out of a command what err says is above the cluster's feature
// level and may be left out: who sent it. It reports whether there was any: the
// command is then to be proposed again.
func unsigned(cmd fsm.Command, err error) (_ fsm.Command, had bool) {
	if !errors.Is(err, fsm.ErrLevel) {
		return cmd, false
	}
	switch c := cmd.(type) {
	case fsm.SetType:
		had, c.By = c.By != "", ""
		return c, had
	case fsm.SetSchedule:
		had, c.By = c.By != "", ""
		return c, had
	case fsm.DeleteSchedule:
		had, c.By = c.By != "", ""
		return c, had
	}
	return cmd, false
}
