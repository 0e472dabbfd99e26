package cluster_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/zones"
	"github.com/claimq/claimq/internal/zones/zonestest"
)

// zoneFile is the time zones of one or several nodes.
type zoneFile struct {
	t      *testing.T
	file   string
	source *zones.Source
}

func newZoneFile(t *testing.T, ahead time.Duration) *zoneFile {
	t.Helper()
	z := &zoneFile{t: t, file: filepath.Join(t.TempDir(), "zones.zip")}
	zonestest.Write(t, z.file, "2027a", zonestest.Always(ahead))
	var err error
	if z.source, err = zones.NewSource(z.file); err != nil {
		t.Fatal(err)
	}
	return z
}

// put sets the offset of the zone's clocks in the file.
func (z *zoneFile) put(ahead time.Duration) {
	z.t.Helper()
	zonestest.Write(z.t, z.file, "2027b", zonestest.Always(ahead))
	if changed, err := z.source.Reload(); err != nil || !changed {
		z.t.Fatalf("changed %t, %v", changed, err)
	}
}

// evenMinutes runs at each even minute of certain hours, first two minutes after the beginning
// of the virtual time. The zone's clocks begin with UTC.
func evenMinutes() fsm.Schedule {
	at := time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC).UnixMilli()
	return fsm.Schedule{
		Name: "even", Task: fsm.NewTask{Type: "even", Params: []byte("1")}, Cron: "*/2 0-23 * * *", Timezone: zonestest.Zone,
		OverlapAllow: true, NextRunAt: at, NextWall: at,
	}
}

// until sleeps until that time after the beginning of the virtual time.
func until(minute, second int) {
	<-time.After(time.Until(time.Date(2000, 1, 1, 0, minute, second, 0, time.UTC)))
}

func timeOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("04:05") }

// wantRuns checks when the tasks of evenMinutes came, and the next slot.
func wantRuns(t *testing.T, n *cluster.Node, next string, want ...string) {
	t.Helper()
	var got []string
	for _, at := range scheduled(n, "even") {
		got = append(got, timeOf(at))
	}
	if waits := timeOf(scheduleOf(n, "even").NextRunAt); !slices.Equal(got, want) || waits != next {
		t.Fatalf("it ran at %v and waits for %s, want %v and %s", got, waits, want, next)
	}
}

// When the data of its zone change, a schedule waits for the same local time, which runs once:
// not again if that is later now, and at once if it is in the past.
func TestSchedules_newZones(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		z := newZoneFile(t, 0)
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.Zones = z.source })
		c.Propose(command.SetSchedule{Schedule: evenMinutes()})
		until(2, 10)
		wantRuns(t, c.Leader(), "04:00", "02:00")
		z.put(-20 * time.Second)
		until(3, 40)
		wantRuns(t, c.Leader(), "04:20", "02:00")
		z.put(30 * time.Second) // where it is ten past four
		until(5, 0)
		wantRuns(t, c.Leader(), "05:30", "02:00", "03:40")
		until(5, 40)
		z.put(0) // where it is not yet six, a time that has run
		until(6, 30)
		wantRuns(t, c.Leader(), "08:00", "02:00", "03:40", "05:30")
		c.EnsureSame()
	})
}

// Nodes with different zones lead in turn: each local time runs once, according to the
// leader's zones.
func TestSchedules_zonesOfTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		early, late := newZoneFile(t, time.Minute), newZoneFile(t, 0)
		c := clustertest.New(t, 3, func(cfg *cluster.Config) {
			cfg.Zones = late.source
			if cfg.NodeID == "n1" {
				cfg.Zones = early.source
			}
		})
		lead := func(id string) {
			t.Helper()
			if c.Leader().NodeID() == id {
				return
			}
			if _, err := c.Leader().Transfer(context.Background(), id); err != nil {
				t.Fatal(err)
			}
			c.Wait(id+" to lead", func() bool { return c.Leader().NodeID() == id })
		}
		lead("n2")
		c.Propose(command.SetSchedule{Schedule: evenMinutes()})
		lead("n1")
		until(1, 30)
		lead("n2")
		until(2, 30)
		wantRuns(t, c.Leader(), "04:00", "01:00")
		lead("n1")
		until(3, 20)
		lead("n3")
		until(4, 30)
		wantRuns(t, c.Leader(), "06:00", "01:00", "03:00")
		c.EnsureSame()
	})
}

// A schedule whose local time is not known moves to the nearest slot.
func TestSchedules_newZonesWithoutAWall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		z := newZoneFile(t, 0)
		c := clustertest.New(t, 1, func(cfg *cluster.Config) { cfg.Zones = z.source })
		s := evenMinutes()
		s.NextWall = 0
		c.Propose(command.SetSchedule{Schedule: s})
		until(1, 50)
		z.put(-20 * time.Second)
		until(2, 30)
		wantRuns(t, c.Leader(), "04:20", "02:20")
	})
}
