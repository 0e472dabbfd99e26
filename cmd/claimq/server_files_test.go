package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/internal/zones/zonestest"
)

// startZoned starts a single node with its own time zone file.
func startZoned(t *testing.T) (c *processCluster, n *procs.Node, zones string) {
	t.Helper()
	zones = filepath.Join(t.TempDir(), "zones.zip")
	zonestest.Write(t, zones, "2027a", zonestest.Always(0))
	c = newProcesses(t, 1, 0)
	n = c.Nodes[0]
	n.SetFlag("--zone-data-file", zones)
	c.start(n)
	return c, n, zones
}

// A changed time zone file is read again without a signal. The cluster's overview shows the new version, and a
// schedule's next run moves.
func TestServer_zonesAgain(t *testing.T) {
	t.Parallel()
	c, n, zones := startZoned(t)
	body := `{"cron":"0 3 * * *","timezone":"` + zonestest.Zone + `","task":{"task_type":"night","params":1}}`
	if status, answer, err := ask(t.Context(), http.MethodPut, n.URL()+"/api/schedules/night", "", body); err != nil || status/100 != 2 || !strings.Contains(answer, "T03:00:00") {
		t.Fatalf("%d, %v: %s", status, err, answer)
	}
	told := func(version string) bool {
		_, answer, err := ask(t.Context(), http.MethodGet, n.URL()+"/api/cluster", "", "")
		return err == nil && strings.Contains(answer, `"version":"`+version+`"`) && strings.Contains(c.do("cluster", "status"), "time zones: "+version)
	}
	testwait.Until(t, "the version of the start", func() bool { return told("2027a") })
	zonestest.Write(t, zones, "2027b", zonestest.Always(2*time.Hour))
	testwait.Until(t, "the version that the file has now", func() bool { return told("2027b") })
	testwait.Until(t, "the next run by the new clocks", func() bool {
		_, answer, err := ask(t.Context(), http.MethodGet, n.URL()+"/api/schedules/night", "", "")
		return err == nil && strings.Contains(answer, "T01:00:00")
	})
}
