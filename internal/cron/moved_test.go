package cron

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/internal/zones"
	"github.com/claimq/claimq/internal/zones/zonestest"
)

// release returns zones, one of which has these jumps.
func release(t testing.TB, jumps ...zonestest.Jump) *zones.Data {
	t.Helper()
	d, err := zones.Open(zonestest.Write(t, filepath.Join(t.TempDir(), "zones.zip"), "2027a", jumps))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func jump(at time.Time, ahead time.Duration) zonestest.Jump {
	return zonestest.Jump{At: at, Ahead: ahead}
}

// always is before all times of these tests.
var always = time.Unix(0, 0)

func utc(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// A waiting slot moves with newer data of its zone, and no local time that is done comes again.
func TestTimes_Again(t *testing.T) {
	t.Parallel()
	summer := jump(time.UnixMilli(utc(t, "2026-03-29 01:00")), 2*time.Hour)
	winter := jump(time.UnixMilli(utc(t, "2026-10-25 01:00")), time.Hour)
	none := []zonestest.Jump{jump(always, 0)}
	back, ahead := []zonestest.Jump{jump(always, -2*time.Minute)}, []zonestest.Jump{jump(always, time.Hour)}
	for _, c := range []struct {
		name, cron string
		old, new   []zonestest.Jump
		after      string // the previous slot, which is done
		slot, want string // with the old data and with the new; "" = never
		blind      bool   // the local time is not known
	}{
		{"nothing changed", "0 3 * * *", none, none, "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-02 03:00", false},
		{"nothing changed, and not known", "0 3 * * *", none, none, "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-02 03:00", true},
		{"later", "0 3 * * *", none, back, "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-02 03:02", false},
		{"later, and not known", "0 3 * * *", none, back, "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-02 03:02", true},
		{"earlier", "0 3 * * *", none, ahead, "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-02 02:00", false},
		{"earlier, and not known", "0 3 * * *", none, ahead, "2026-05-01 03:00", "2026-05-02 03:00", "2026-05-02 02:00", true},
		{"one done, one to come, an hour apart", "0 3,4 * * *", none, ahead, "2026-05-01 03:00", "2026-05-01 04:00", "2026-05-01 03:00", true},
		{"one done an hour ago by the new data", "0 3,4 * * *", ahead, none, "2026-05-01 03:00", "2026-05-02 02:00", "2026-05-02 03:00", false},
		{"each hour", "20 * * * *", none, back, "2026-05-01 12:20", "2026-05-01 13:20", "2026-05-01 13:22", false},
		{"each minute", "* * * * *", none, back, "2026-05-01 12:20", "2026-05-01 12:21", "2026-05-01 12:23", false},
		{"once a year", "0 0 1 1 *", none, ahead, "2026-01-01 00:00", "2027-01-01 00:00", "2026-12-31 23:00", false},
		{"summer time is given up", "30 2 * * *", []zonestest.Jump{jump(always, time.Hour), summer}, []zonestest.Jump{jump(always, time.Hour)}, "2026-03-28 01:30", "2026-03-29 01:00", "2026-03-29 01:30", false},
		{"summer time begins", "30 2 * * *", []zonestest.Jump{jump(always, time.Hour)}, []zonestest.Jump{jump(always, time.Hour), summer}, "2026-03-28 01:30", "2026-03-29 01:30", "2026-03-29 01:00", false},
		{"the hour that came twice comes once", "30 2 * * *", []zonestest.Jump{jump(always, 2*time.Hour), winter}, []zonestest.Jump{jump(always, 2*time.Hour)}, "2026-10-25 00:30", "2026-10-26 01:30", "2026-10-26 00:30", false},
		{"within the hour that comes twice", "*/30 * * * *", []zonestest.Jump{jump(always, 2*time.Hour), winter}, []zonestest.Jump{jump(always, 2*time.Hour), winter}, "2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:00", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := Plan{Cron: c.cron, Timezone: zonestest.Zone}
			before, err := plan.Read(release(t, c.old...))
			if err != nil {
				t.Fatal(err)
			}
			after, err := plan.Read(release(t, c.new...))
			if err != nil {
				t.Fatal(err)
			}
			done := utc(t, c.after)
			slot, ok := before.Next(done)
			if !ok || slot != utc(t, c.slot) {
				t.Fatalf("by the old data the slot is %s", time.UnixMilli(slot).UTC())
			}
			shown := before.Wall(slot)
			if c.blind {
				shown = 0
			}
			moved, ok := after.Again(slot, shown, done)
			if want := utc(t, c.want); !ok || moved != want {
				t.Errorf("it is at %s, %v, want %s", time.UnixMilli(moved).UTC(), ok, time.UnixMilli(want).UTC())
			}
			if again, ok := after.Again(moved, max(shown, after.Wall(moved)), done); !ok || again != moved {
				t.Errorf("the second time it is at %s, %v", time.UnixMilli(again).UTC(), ok)
			}
		})
	}
}

// However the data change during a schedule, no local time runs twice, and none that both have
// is skipped.
func TestTimes_Again_anyData(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(r *rapid.T) {
		plan := Plan{Timezone: zonestest.Zone, Cron: rapid.SampledFrom([]string{"0 3 * * *", "30 1,2 * * *", "*/20 1-4 * * *", "0 0 * * 1", "15 2 1 * *"}).Draw(r, "cron")}
		offset := rapid.IntRange(-3, 3)
		var releases []*Times
		for range 2 {
			times, err := plan.Read(release(t, jump(always, time.Duration(offset.Draw(r, "ahead"))*time.Hour/2)))
			if err != nil {
				r.Fatal(err)
			}
			releases = append(releases, times)
		}
		in, last := releases[0], int64(math.MinInt64)
		slot, _ := in.Next(1_780_000_000_000)
		shown := in.Wall(slot)
		for range 20 {
			if rapid.Bool().Draw(r, "new data") {
				in = releases[rapid.IntRange(0, 1).Draw(r, "release")]
				moved, ok := in.Again(slot, shown, max(last, 0))
				if !ok {
					r.Fatal("no slot any more")
				}
				if slot = moved; in.Wall(slot) != shown {
					r.Fatalf("it waits for %d on the wall, and is moved to %d", shown, in.Wall(slot))
				}
			}
			last = slot
			next, _ := in.Next(slot)
			if wall := in.Wall(next); wall <= shown {
				r.Fatalf("%d on the wall after %d", wall, shown)
			} else {
				slot, shown = next, wall
			}
		}
	})
}
