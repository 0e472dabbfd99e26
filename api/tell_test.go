package api

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

// TestServer_tell ensures that an action is recorded in the trail, and that a failure to do so is only logged.
func TestServer_tell(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, node := setup(t, func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
	s.core.tell(command.Tell{Kind: event.KeysReloaded, By: "ann", What: "3 keys"}, "")
	got := eventsOf(t, s.call(t, "GET /api/events?event=keys_reloaded", ""))
	if len(got.Events) != 1 || got.Events[0].Message != "3 keys by ann" {
		t.Errorf("told %+v", got.Events)
	}
	node.TellErr = errors.New("the leader is far away")
	s.core.tell(command.Tell{Kind: event.KeysReloaded, What: "4 keys"}, "")
	if !strings.Contains(log.String(), "keys_reloaded") || !strings.Contains(log.String(), "far away") {
		t.Errorf("logged: %s", log.String())
	}
}
