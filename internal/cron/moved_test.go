package cron

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/zones"
)

// jump is one of a zone's clocks: from then on they are so far ahead of UTC.
type jump struct {
	at    time.Time
	ahead time.Duration
}

// always is before all times of these tests.
var always = time.Unix(0, 0)

// release returns zones of which one, Here, has these jumps.
func release(t testing.TB, jumps ...jump) *zones.Data {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("TZif\x00")
	b.Write(make([]byte, 15))
	for _, n := range []int{0, 0, 0, len(jumps), len(jumps), 4} {
		binary.Write(&b, binary.BigEndian, int32(n))
	}
	for _, j := range jumps {
		binary.Write(&b, binary.BigEndian, int32(j.at.Unix()))
	}
	for i := range jumps {
		b.WriteByte(byte(i))
	}
	for _, j := range jumps {
		binary.Write(&b, binary.BigEndian, int32(j.ahead/time.Second))
		b.WriteString("\x00\x00")
	}
	b.WriteString("XXX\x00")
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, text := range map[string]string{"+VERSION": "2027a", "Here": b.String()} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "zones.zip")
	if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := zones.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func utc(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// A slot that waits goes where newer data of its zone have it, and none that is done on the
// wall comes again.
func TestTimes_Again(t *testing.T) {
	t.Parallel()
	summer := jump{time.UnixMilli(utc(t, "2026-03-29 01:00")), 2 * time.Hour}
	winter := jump{time.UnixMilli(utc(t, "2026-10-25 01:00")), time.Hour}
	none := []jump{{always, 0}}
	back, ahead := []jump{{always, -2 * time.Minute}}, []jump{{always, time.Hour}}
	for _, c := range []struct {
		name, cron string
		old, new   []jump
		after      string // the slot before, which is done
		slot, want string // by the old data and by the new; "" = never
		blind      bool   // what the clocks show is not known
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
		{"summer time is given up", "30 2 * * *", []jump{{always, time.Hour}, summer}, []jump{{always, time.Hour}}, "2026-03-28 01:30", "2026-03-29 01:00", "2026-03-29 01:30", false},
		{"summer time begins", "30 2 * * *", []jump{{always, time.Hour}}, []jump{{always, time.Hour}, summer}, "2026-03-28 01:30", "2026-03-29 01:30", "2026-03-29 01:00", false},
		{"the hour that came twice comes once", "30 2 * * *", []jump{{always, 2 * time.Hour}, winter}, []jump{{always, 2 * time.Hour}}, "2026-10-25 00:30", "2026-10-26 01:30", "2026-10-26 00:30", false},
		{"within the hour that comes twice", "*/30 * * * *", []jump{{always, 2 * time.Hour}, winter}, []jump{{always, 2 * time.Hour}, winter}, "2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:00", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := Plan{Cron: c.cron, Timezone: "Here"}
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

// However the data change while a schedule goes on, no time on the wall runs twice, and none is
// left out that both have.
func TestTimes_Again_anyData(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		plan := Plan{Timezone: "Here", Cron: rapid.SampledFrom([]string{"0 3 * * *", "30 1,2 * * *", "*/20 1-4 * * *", "0 0 * * 1", "15 2 1 * *"}).Draw(r, "cron")}
		offset := rapid.IntRange(-3, 3)
		var releases []*Times
		for range 2 {
			times, err := plan.Read(release(t, jump{always, time.Duration(offset.Draw(r, "ahead")) * time.Hour / 2}))
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
