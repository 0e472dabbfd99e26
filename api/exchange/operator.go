package exchange

import (
	"context"
	"errors"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// Tell records the request's action, which has succeeded, in the trail; what describes it in a few words. If that
// fails, it is only logged, because the action is done.
func (r *Request) Tell(kind event.Kind, what string) {
	r.Server.Tell(command.Tell{Kind: kind, By: r.By(), What: what}, r.keyText())
}

// Tell records an action for which no request waits now; key is the operator's API key. The node bounds how long it
// takes.
func (s *Host) Tell(cmd command.Tell, key string) {
	if err := s.Node.Tell(context.Background(), cmd, key); err != nil {
		s.Logger.Warn("an operator's act is not in the trail", "event", cmd.Kind.String(), "what", cmd.What, "by", cmd.By, "error", err)
	}
}

// Operator returns the operator who makes the request.
func (r *Request) Operator() nodes.Operator { return nodes.Operator{Name: r.By(), Key: r.keyText()} }

// By returns the name of the request's key, "" in open mode.
func (r *Request) By() string { return r.key }

// keyText returns the key itself, "" in open mode.
func (r *Request) keyText() string {
	if r.Who == nil {
		return ""
	}
	key, _ := r.sentKey()
	return string(key)
}

// Unsigned removes the sender's name from a command if err says that it is above the cluster's feature level. It
// reports whether there was one; then the command should be proposed again.
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
