package cron

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/internal/zones"
)

const layout = "2006-01-02 15:04:05 -0700"

func at(t testing.TB, zone, text string) int64 {
	t.Helper()
	location, err := (*zones.Data)(nil).Location(zone)
	if err != nil {
		t.Fatal(err)
	}
	when, err := time.ParseInLocation("2006-01-02 15:04:05", text, location)
	if err != nil {
		t.Fatal(err)
	}
	return when.UnixMilli()
}

// runs returns the next count times after after, in the zone's local time.
func runs(t testing.TB, p Plan, after int64, count int) string {
	t.Helper()
	times, err := p.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for range count {
		next, ok := times.Next(after)
		if !ok {
			shown = append(shown, "never")
			break
		}
		if next <= after {
			t.Fatalf("%+v: %d comes after %d", p, next, after)
		}
		shown = append(shown, time.UnixMilli(next).In(times.zone).Format(layout))
		after = next
	}
	return strings.Join(shown, "\n")
}

func TestPlan_Next(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, after, want string }{
		{"* * * * *", "2026-11-21 12:00:00", "2026-11-21 12:01:00 +0000\n2026-11-21 12:02:00 +0000"},
		{"* * * * *", "2026-11-21 12:00:59", "2026-11-21 12:01:00 +0000\n2026-11-21 12:02:00 +0000"},
		{"*/20 9-10 * * *", "2026-11-21 09:30:00", "2026-11-21 09:40:00 +0000\n2026-11-21 10:00:00 +0000\n2026-11-21 10:20:00 +0000\n2026-11-21 10:40:00 +0000\n2026-11-22 09:00:00 +0000"},
		{"5,10-20/5,50/5 0 1 1 *", "2026-11-21 00:00:00", "2027-01-01 00:05:00 +0000\n2027-01-01 00:10:00 +0000\n2027-01-01 00:15:00 +0000\n2027-01-01 00:20:00 +0000\n2027-01-01 00:50:00 +0000\n2027-01-01 00:55:00 +0000\n2028-01-01 00:05:00 +0000"},
		{" 0\t3 * jan,MAR mon ", "2026-11-21 00:00:00", "2027-01-04 03:00:00 +0000\n2027-01-11 03:00:00 +0000"},
		// Sunday has two numbers, and ends a range.
		{"0 0 * * 0", "2026-11-21 00:00:00", "2026-11-22 00:00:00 +0000\n2026-11-29 00:00:00 +0000"},
		{"0 0 * * 7", "2026-11-21 00:00:00", "2026-11-22 00:00:00 +0000\n2026-11-29 00:00:00 +0000"},
		{"0 0 * * 6-7", "2026-11-21 00:00:00", "2026-11-22 00:00:00 +0000\n2026-11-28 00:00:00 +0000\n2026-11-29 00:00:00 +0000"},
		{"0 0 * * FRI-SUN", "2026-11-22 00:00:00", "2026-11-27 00:00:00 +0000\n2026-11-28 00:00:00 +0000\n2026-11-29 00:00:00 +0000"},
		// Either day will do, unless one begins with a star.
		{"0 0 13 * 5", "2026-11-21 00:00:00", "2026-11-27 00:00:00 +0000\n2026-12-04 00:00:00 +0000\n2026-12-11 00:00:00 +0000\n2026-12-13 00:00:00 +0000"},
		{"0 0 */2 * 5", "2026-11-21 00:00:00", "2026-11-27 00:00:00 +0000\n2026-12-11 00:00:00 +0000\n2026-12-25 00:00:00 +0000"},
		{"0 0 ? * 5", "2026-11-21 00:00:00", "2026-11-27 00:00:00 +0000\n2026-12-04 00:00:00 +0000"},
		// Days that depend on the month.
		{"0 0 L * *", "2026-11-21 00:00:00", "2026-11-30 00:00:00 +0000\n2026-12-31 00:00:00 +0000\n2027-01-31 00:00:00 +0000\n2027-02-28 00:00:00 +0000"},
		{"0 0 15W * *", "2026-07-21 00:00:00", "2026-08-14 00:00:00 +0000\n2026-09-15 00:00:00 +0000\n2026-10-15 00:00:00 +0000\n2026-11-16 00:00:00 +0000"},
		{"0 0 1W * *", "2026-07-21 00:00:00", "2026-08-03 00:00:00 +0000\n2026-09-01 00:00:00 +0000"},
		{"0 0 31W * *", "2026-05-01 00:00:00", "2026-05-29 00:00:00 +0000\n2026-07-31 00:00:00 +0000\n2026-08-31 00:00:00 +0000\n2026-10-30 00:00:00 +0000"},
		{"0 0 * * 0L,1#5", "2026-11-01 00:00:00", "2026-11-29 00:00:00 +0000\n2026-11-30 00:00:00 +0000\n2026-12-27 00:00:00 +0000\n2027-01-31 00:00:00 +0000"},
		{"0 0 * * 5L", "2026-11-21 00:00:00", "2026-11-27 00:00:00 +0000\n2026-12-25 00:00:00 +0000"},
		{"0 0 * * 1#2", "2026-11-21 00:00:00", "2026-12-14 00:00:00 +0000\n2027-01-11 00:00:00 +0000"},
		{"0 0 * * 7#1,3", "2026-11-30 00:00:00", "2026-12-02 00:00:00 +0000\n2026-12-06 00:00:00 +0000\n2026-12-09 00:00:00 +0000"},
		// Rare days, and one that never comes.
		{"0 0 29 2 *", "2026-11-21 00:00:00", "2028-02-29 00:00:00 +0000\n2032-02-29 00:00:00 +0000"},
		{"0 0 29 2 *", "2096-11-21 00:00:00", "2104-02-29 00:00:00 +0000"},
		{"0 0 29 2 */7", "2026-11-21 00:00:00", "2032-02-29 00:00:00 +0000\n2060-02-29 00:00:00 +0000"},
		{"0 0 31 2 *", "2026-11-21 00:00:00", "never"},
		{"0 0 30,31 2 *", "2026-11-21 00:00:00", "never"},
		{"0 0 31 4,6,9,11 *", "2026-11-21 00:00:00", "never"},
		{"@hourly", "2026-11-21 12:30:00", "2026-11-21 13:00:00 +0000"},
		{"@Daily", "2026-11-21 12:30:00", "2026-11-22 00:00:00 +0000"},
		{"@midnight", "2026-11-21 12:30:00", "2026-11-22 00:00:00 +0000"},
		{"@weekly", "2026-11-21 12:30:00", "2026-11-22 00:00:00 +0000"},
		{"@monthly", "2026-11-21 12:30:00", "2026-12-01 00:00:00 +0000"},
		{"@yearly", "2026-11-21 12:30:00", "2027-01-01 00:00:00 +0000"},
		{"@annually", "2026-11-21 12:30:00", "2027-01-01 00:00:00 +0000"},
		{"59 23 31 12 *", "9999-12-31 23:58:00", "9999-12-31 23:59:00 +0000\nnever"},
	} {
		if got := runs(t, Plan{Cron: c.cron}, at(t, "UTC", c.after), strings.Count(c.want, "\n")+1); got != c.want {
			t.Errorf("%s after %s:\n%s\nwant\n%s", c.cron, c.after, got, c.want)
		}
	}
}

// Skipped times run at the jump, and times that come twice run once, unless the plan runs
// at any hour and so follows elapsed time.
func TestPlan_Next_clocksJump(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, cron, after, want string }{
		{"Europe/Prague", "30 2 * * *", "2026-03-28 00:00:00", "2026-03-28 02:30:00 +0100\n2026-03-29 03:00:00 +0200\n2026-03-30 02:30:00 +0200"},
		{"Europe/Prague", "0,30 2,3 * * *", "2026-03-29 00:00:00", "2026-03-29 03:00:00 +0200\n2026-03-29 03:30:00 +0200\n2026-03-30 02:00:00 +0200"},
		{"Europe/Prague", "0 3 * * *", "2026-03-28 12:00:00", "2026-03-29 03:00:00 +0200\n2026-03-30 03:00:00 +0200"},
		{"Europe/Prague", "20 * * * *", "2026-03-29 00:30:00", "2026-03-29 01:20:00 +0100\n2026-03-29 03:20:00 +0200"},
		{"Europe/Prague", "30 2 * * *", "2026-10-24 12:00:00", "2026-10-25 02:30:00 +0200\n2026-10-26 02:30:00 +0100"},
		{"Europe/Prague", "0 2,3 * * *", "2026-10-24 12:00:00", "2026-10-25 02:00:00 +0200\n2026-10-25 03:00:00 +0100\n2026-10-26 02:00:00 +0100"},
		{"Europe/Prague", "*/30 * * * *", "2026-10-25 01:30:00", "2026-10-25 02:00:00 +0200\n2026-10-25 02:30:00 +0200\n2026-10-25 02:00:00 +0100\n2026-10-25 02:30:00 +0100\n2026-10-25 03:00:00 +0100"},
		{"Europe/Prague", "15 */2 * * *", "2026-10-25 01:30:00", "2026-10-25 02:15:00 +0200\n2026-10-25 02:15:00 +0100\n2026-10-25 04:15:00 +0100"},
		{"America/New_York", "15 2 * * *", "2026-03-07 12:00:00", "2026-03-08 03:00:00 -0400\n2026-03-09 02:15:00 -0400"},
		{"America/New_York", "15 1 * * *", "2026-10-31 12:00:00", "2026-11-01 01:15:00 -0400\n2026-11-02 01:15:00 -0500"},
		{"America/New_York", "*/30 1-2 * * *", "2026-11-01 00:00:00", "2026-11-01 01:00:00 -0400\n2026-11-01 01:30:00 -0400\n2026-11-01 02:00:00 -0500"},
		{"America/New_York", "0 0 29 2 *", "2026-03-08 00:00:00", "2028-02-29 00:00:00 -0500"},
		{"America/New_York", "0 0 31 2 *", "2026-03-08 00:00:00", "never"},
		// A whole day was skipped, and one began at one o'clock.
		{"Pacific/Apia", "0 6 * * *", "2011-12-29 12:00:00", "2011-12-31 00:00:00 +1400\n2011-12-31 06:00:00 +1400"},
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03 12:00:00", "2018-11-04 01:00:00 -0200\n2018-11-05 00:00:00 -0200"},
		{"Asia/Kolkata", "0 9 * * 1-5", "2026-11-21 00:00:00", "2026-11-23 09:00:00 +0530"},
	} {
		if got := runs(t, Plan{Cron: c.cron, Timezone: c.zone}, at(t, c.zone, c.after), strings.Count(c.want, "\n")+1); got != c.want {
			t.Errorf("%s in %s after %s:\n%s\nwant\n%s", c.cron, c.zone, c.after, got, c.want)
		}
	}
}

// In the hour that comes twice, the second pass does not run what is set to certain hours.
func TestPlan_Next_fromWithinAJump(t *testing.T) {
	t.Parallel()
	first := at(t, "Europe/Prague", "2026-10-25 01:59:00") + 60_000 // 02:00 for the first time
	p := Plan{Cron: "30 2 * * *", Timezone: "Europe/Prague"}
	for minutes, want := range map[int64]string{
		0:   "2026-10-25 02:30:00 +0200",
		29:  "2026-10-25 02:30:00 +0200",
		30:  "2026-10-26 02:30:00 +0100",
		60:  "2026-10-26 02:30:00 +0100",
		80:  "2026-10-26 02:30:00 +0100",
		100: "2026-10-26 02:30:00 +0100",
	} {
		if got := runs(t, p, first+minutes*60_000, 1); got != want {
			t.Errorf("%d minutes after the first 02:00: %s, want %s", minutes, got, want)
		}
	}
}

func TestPlan_Every(t *testing.T) {
	t.Parallel()
	times, err := Plan{EveryMS: 1000}.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ slot, now, want int64 }{
		{5, 5, 1005},
		{5, 0, 1005}, // not before its own slot
		{5, 1004, 1005},
		{5, 1005, 2005},
		{5, 86_400_005, 86_401_005},
	} {
		if got, ok := times.Following(c.slot, c.now); !ok || got != c.want {
			t.Errorf("slot %d, now %d: %d, %v, want %d", c.slot, c.now, got, ok, c.want)
		}
	}
	if got, ok := times.Next(7); !ok || got != 1007 {
		t.Errorf("after 7: %d, %v", got, ok)
	}
	if got, ok := times.Next(math.MaxInt64 - 10); ok {
		t.Errorf("a slot at %d, after the end of time", got)
	}
	if got, ok := times.Following(math.MinInt64, math.MaxInt64-2000); !ok || got <= math.MaxInt64-2000 {
		t.Errorf("the widest gap: %d, %v", got, ok)
	}
}

func TestTimes_Following_cron(t *testing.T) {
	t.Parallel()
	times, err := Plan{Cron: "0 * * * *"}.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	slot := at(t, "UTC", "2026-11-21 12:00:00")
	for now, want := range map[string]string{
		"2026-11-21 11:00:00": "2026-11-21 13:00:00",
		"2026-11-21 12:00:00": "2026-11-21 13:00:00",
		"2026-11-24 17:20:00": "2026-11-24 18:00:00",
	} {
		if got, ok := times.Following(slot, at(t, "UTC", now)); !ok || got != at(t, "UTC", want) {
			t.Errorf("at %s: %s, %v, want %s", now, time.UnixMilli(got).UTC(), ok, want)
		}
	}
}

func TestPlan_Check(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan Plan
		want error
		text string
	}{
		{Plan{}, ErrEvery, "0 ms"},
		{Plan{EveryMS: -5}, ErrEvery, "-5 ms"},
		{Plan{Cron: "@daily", EveryMS: 5}, ErrEvery, "together with a cron expression"},
		{Plan{Cron: "@daily", Timezone: "Europe/Praha"}, ErrTimezone, `"Europe/Praha"`},
		{Plan{Cron: "@daily", Timezone: "Local"}, ErrTimezone, `"Local"`},
		{Plan{Cron: "@daily", Timezone: "../../etc/passwd"}, ErrTimezone, "passwd"},
		{Plan{Cron: " "}, ErrCron, "and has 0"},
		{Plan{Cron: "* * * *"}, ErrCron, "and has 4"},
		{Plan{Cron: "0 * * * * *"}, ErrCron, "and has 6"},
		{Plan{Cron: "* * * * * 2027"}, ErrCron, "and has 6"},
		{Plan{Cron: "@everysecond"}, ErrCron, `"@everysecond" is none of @hourly`},
		{Plan{Cron: "@every 5m"}, ErrCron, "is none of"},
		{Plan{Cron: "60 * * * *"}, ErrCron, `the minute has "60", which is not a number from 0 to 59`},
		{Plan{Cron: "-1 * * * *"}, ErrCron, `the minute has "", which is not`},
		{Plan{Cron: "* 24 * * *"}, ErrCron, `the hour has "24"`},
		{Plan{Cron: "* * 0 * *"}, ErrCron, `the day of month has "0", which is not a number from 1 to 31`},
		{Plan{Cron: "* * * 13 *"}, ErrCron, `the month has "13"`},
		{Plan{Cron: "* * * JUNE *"}, ErrCron, `the month has "JUNE", which is not a number from 1 to 12 or a name from JAN to DEC`},
		{Plan{Cron: "* * * ANF *"}, ErrCron, `the month has "ANF"`},
		{Plan{Cron: "* * * * 8"}, ErrCron, `the day of week has "8", which is not a number from 0 to 7 or a name from SUN to SAT`},
		{Plan{Cron: "MON * * * *"}, ErrCron, `the minute has "MON"`},
		// A wrong part is an error even after a part that is due.
		{Plan{Cron: "0-59,99 * * * *"}, ErrCron, `"99"`},
		{Plan{Cron: "1,,2 * * * *"}, ErrCron, `""`},
		{Plan{Cron: "5-1 * * * *"}, ErrCron, `"5-1", which runs backwards`},
		{Plan{Cron: "1-2-3 * * * *"}, ErrCron, `"2-3"`},
		{Plan{Cron: "*/0 * * * *"}, ErrCron, `step "0"`},
		{Plan{Cron: "*/99 * * * *"}, ErrCron, `step "99"`},
		{Plan{Cron: "*/5/5 * * * *"}, ErrCron, `step "5/5"`},
		{Plan{Cron: "+5 * * * *"}, ErrCron, `"+5"`},
		{Plan{Cron: "? * * * *"}, ErrCron, `the minute has "?"`},
		{Plan{Cron: "* L * * *"}, ErrCron, `the hour has "L"`},
		{Plan{Cron: "* * LW * *"}, ErrCron, `the day of month has "LW"`},
		{Plan{Cron: "* * 32W * *"}, ErrCron, `"32W"`},
		{Plan{Cron: "* * * * L"}, ErrCron, `the day of week has "L"`},
		{Plan{Cron: "* * * * 1#6"}, ErrCron, `"1#6"`},
		{Plan{Cron: strings.Repeat("1,", 300) + "1 * * * *"}, ErrCron, "at most 256"},
	} {
		_, err := c.plan.Read(nil)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v, want %v with %q", c.plan, err, c.want, c.text)
		}
	}
	for _, p := range []Plan{{Cron: "0 0 31 2 *"}, {Cron: "@daily", Timezone: "UTC"}, {Cron: "@daily", Timezone: "Asia/Kathmandu"}, {EveryMS: 1000}} {
		if _, err := p.Read(nil); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// Another implementation finds the same minutes. It has no range that ends with Sunday.
func TestPlan_Next_matchesGronx(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		days := rapid.SampledFrom([]string{"*", "*", "1-7", "*/3", "L", "15W", "10,20,30", "28-31/2", "28W,1W", "7W,30"})
		weekdays := rapid.SampledFrom([]string{"*", "*", "1-5", "0", "7", "TUE", "*/2", "5L", "3#2", "7L", "0#1,6#5"})
		expression := strings.Join([]string{
			rapid.SampledFrom([]string{"*", "0", "*/7", "3-50/9", "1,59", "20/13"}).Draw(t, "minute"),
			rapid.SampledFrom([]string{"*", "0", "*/5", "9-17", "23,4"}).Draw(t, "hour"),
			days.Draw(t, "day"),
			rapid.SampledFrom([]string{"*", "2", "NOV", "1-6", "*/3"}).Draw(t, "month"),
			weekdays.Draw(t, "weekday"),
		}, " ")
		after := rapid.Int64Range(0, 4_000_000_000).Draw(t, "after")
		times, err := Plan{Cron: expression}.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		next, ok := times.Next(after * 1000)
		if !ok {
			t.Fatalf("%s never runs after %d", expression, after)
		}
		g := gronx.New()
		at := time.Unix(after, 0).UTC().Truncate(time.Minute)
		for range 3 * 24 * 60 {
			at = at.Add(time.Minute)
			due, err := g.IsDue(expression, at)
			if err != nil {
				t.Fatal(err)
			}
			if due || !at.Before(time.UnixMilli(next)) {
				if !due || at.UnixMilli() != next {
					t.Fatalf("%s after %s: next %s, at %s due %v", expression, time.Unix(after, 0).UTC(), time.UnixMilli(next).UTC(), at, due)
				}
				return
			}
		}
	})
}

// Over years, in any zone, a nightly plan runs once a night, and one for each quarter of an
// hour never skips or repeats one.
func TestPlan_Next_overYears(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Prague", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Santiago"} {
		nightly, err := Plan{Cron: "10 2 * * *", Timezone: zone}.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		after := at(t, zone, "2024-01-01 00:00:00")
		for day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2029; day = day.AddDate(0, 0, 1) {
			next, ok := nightly.Next(after)
			if shown := time.UnixMilli(next).In(nightly.zone); !ok || shown.Format("2006-01-02") != day.Format("2006-01-02") {
				t.Fatalf("%s: the night of %s is at %s", zone, day.Format("2006-01-02"), shown)
			}
			after = next
		}
		quarters, err := Plan{Cron: "*/15 * * * *", Timezone: zone}.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 40_000 {
			next, ok := quarters.Next(after)
			if !ok || next-after > 15*60_000 || next%(15*60_000) != 0 {
				t.Fatalf("%s: after %s comes %s", zone, time.UnixMilli(after).In(quarters.zone), time.UnixMilli(next).In(quarters.zone))
			}
			after = next
		}
	}
}

// No input panics or hangs, and the following slot is later, with none in between.
func FuzzPlan(f *testing.F) {
	f.Add("30 2 * * *", "Europe/Prague", int64(1_774_700_000_000), int64(1))
	f.Add("0 0 31 2 *", "", int64(0), int64(0))
	f.Add("*/5 */2 L,15W 2 5L,1#2", "America/New_York", int64(-1), int64(5))
	f.Add("@yearly", "Pacific/Apia", int64(math.MaxInt64), int64(0))
	f.Add("0 0 29 2 */7", "Africa/Casablanca", int64(math.MinInt64), int64(0))
	f.Add("", "", int64(5), int64(1000))
	f.Fuzz(func(t *testing.T, expression, zone string, after, everyMS int64) {
		p := Plan{Cron: expression, Timezone: zone, EveryMS: everyMS}
		times, err := p.Read(nil)
		if err != nil {
			p.EveryMS = 0
			times, err = p.Read(nil)
		}
		if err != nil {
			return
		}
		next, ok := times.Next(after)
		if !ok {
			return
		}
		if next <= after {
			t.Fatalf("%+v after %d: %d", p, after, next)
		}
		if again, ok := times.Again(next, times.Wall(next), after); !ok || again != next {
			t.Fatalf("%+v: %d is at %d again, %v", p, next, again, ok)
		}
		if between := after + (next-after)/2; p.Cron != "" && between > after && between < next {
			if again, ok := times.Next(between); !ok || again != next {
				t.Fatalf("%+v after %d: %d, after %d: %d, %v", p, after, next, between, again, ok)
			}
		}
	})
}
