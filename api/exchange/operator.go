package exchange

import (
	"context"
	"errors"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// Tell tells of the request's act, which succeeded, in the trail; what says in a
// few words what was done with what. That it could not be told is logged: the act
// stands.
func (r *Request) Tell(kind event.Kind, what string) {
	r.Server.Tell(command.Tell{Kind: kind, By: r.By(), What: what}, r.keyText())
}

// Tell is Request.Tell of an act that no request waits for any more, with the API
// key of whoever did it. The node bounds how long it takes.
func (s *Host) Tell(cmd command.Tell, key string) {
	if err := s.Node.Tell(context.Background(), cmd, key); err != nil {
		s.Logger.Warn("an operator's act is not in the trail", "event", cmd.Kind.String(), "what", cmd.What, "by", cmd.By, "error", err)
	}
}

// Operator returns who asks.
func (r *Request) Operator() nodes.Operator { return nodes.Operator{Name: r.By(), Key: r.keyText()} }

// By returns the name of the key that the request came with, "" in open mode.
func (r *Request) By() string { return r.key }

// keyText returns the key itself, "" in open mode.
func (r *Request) keyText() string {
	if r.Who == nil {
		return ""
	}
	key, _ := r.sentKey()
	return string(key)
}

// Unsigned takes out of a command what err says is above the cluster's feature
// level and may be left out: who sent it. It reports whether there was any: the
// command is then to be proposed again.
func Unsigned(cmd command.Command, err error) (_ command.Command, had bool) {
	if !errors.Is(err, nodes.ErrLevel) {
		return cmd, false
	}
	switch c := cmd.(type) {
	case command.SetType:
		had, c.By = c.By != "", ""
		return c, had
	case command.SetSchedule:
		had, c.By = c.By != "", ""
		return c, had
	case command.DeleteSchedule:
		had, c.By = c.By != "", ""
		return c, had
	}
	return cmd, false
}
