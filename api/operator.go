package api

import (
	"context"
	"errors"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

// tell tells of the request's act, which succeeded, in the trail; what says in a
// few words what was done with what. That it could not be told is logged: the act
// stands.
func (r *request) tell(kind event.Kind, what string) {
	r.server.tell(fsm.Tell{Kind: kind, By: r.by(), What: what}, r.keyText())
}

// tell is request.tell of an act that no request waits for any more, with the API
// key of whoever did it. The node bounds how long it takes.
func (s *host) tell(cmd fsm.Tell, key string) {
	if err := s.node.Tell(context.Background(), cmd, key); err != nil {
		s.logger.Warn("an operator's act is not in the trail", "event", cmd.Kind.String(), "what", cmd.What, "by", cmd.By, "error", err)
	}
}

// operator returns who asks.
func (r *request) operator() fsm.Operator { return fsm.Operator{Name: r.by(), Key: r.keyText()} }

// by returns the name of the key that the request came with, "" in open mode.
func (r *request) by() string { return r.key }

// keyText returns the key itself, "" in open mode.
func (r *request) keyText() string {
	if r.who == nil {
		return ""
	}
	key, _ := r.sentKey()
	return string(key)
}

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
