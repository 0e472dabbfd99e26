package api

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// TestUnsigned ensures that a command is sent without a name if the level is too low for names, and that nothing else
// is left out.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	for _, c := range []command.Command{
		command.SetType{Type: "mail", By: "ann"}, command.SetSchedule{Schedule: fsm.Schedule{Name: "nightly"}, By: "ann"}, command.DeleteSchedule{Name: "nightly", By: "ann"},
	} {
		if _, had := exchange.Unsigned(c, nodes.ErrNoLeader); had {
			t.Errorf("%T: its name is taken out for another error", c)
		}
		plain, had := exchange.Unsigned(c, nodes.ErrLevel)
		if !had || command.LevelOf(plain) >= command.LevelOf(c) {
			t.Errorf("%T is left as %+v, %v", c, plain, had)
		}
		if _, had := exchange.Unsigned(plain, nodes.ErrLevel); had {
			t.Errorf("%T without a name would be proposed for ever", c)
		}
	}
	if _, had := exchange.Unsigned(command.Delete{ID: 1}, nodes.ErrLevel); had {
		t.Error("a delete has a name")
	}
}

// TestServer_tell ensures that an action is recorded in the trail, and that a failure to do so is only logged.
func TestServer_tell(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, node := setup(t, func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
	s.host.Tell(command.Tell{Kind: event.KeysReloaded, By: "ann", What: "3 keys"}, "")
	got := eventsOf(t, s.call(t, "GET /api/events?event=keys_reloaded", ""))
	if len(got.Events) != 1 || got.Events[0].Message != "3 keys by ann" {
		t.Errorf("told %+v", got.Events)
	}
	node.TellErr = errors.New("the leader is far away")
	s.host.Tell(command.Tell{Kind: event.KeysReloaded, What: "4 keys"}, "")
	if !strings.Contains(log.String(), "keys_reloaded") || !strings.Contains(log.String(), "far away") {
		t.Errorf("logged: %s", log.String())
	}
}
