package api

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/door"
)

// Answers of 401 and 403 are logged with the address, only the first in each second, and never with what was sent.
func TestDenied_Logged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, _ := setup(t, withKeys(allRoles()...), func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
		ask := func(header string) string {
			log.Reset()
			s.call(t, "POST /api/tasks", `{"params":1}`, header)
			return log.String()
		}
		if line := ask("X-API-Key: stray-secret"); !strings.Contains(line, "denied a request") || !strings.Contains(line, "status=401") ||
			!strings.Contains(line, "remote_addr=") || !strings.Contains(line, "call=submit_tasks") || strings.Contains(line, "stray-secret") {
			t.Errorf("an unknown key: %s", line)
		}
		for range 3 {
			if line := ask("X-API-Key: stray-secret"); line != "" {
				t.Errorf("one more within the second: %s", line)
			}
		}
		<-time.After(door.SampledInterval)
		if line := ask(with("reader")); !strings.Contains(line, "status=403") || !strings.Contains(line, "key=reader") || !strings.Contains(line, "more_not_logged=3") {
			t.Errorf("a role that may not: %s", line)
		}
		<-time.After(door.SampledInterval)
		if line := ask(with("producer")); line != "" {
			t.Errorf("one that may: %s", line)
		}
	})
}
