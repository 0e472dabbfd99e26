package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// expressionMax bounds an expression: each look at a day costs as much as it is
// long.
const expressionMax = 256

// names are the expressions that have one.
var names = [...]struct{ name, expression string }{
	{"@hourly", "0 * * * *"},
	{"@daily", "0 0 * * *"},
	{"@midnight", "0 0 * * *"},
	{"@weekly", "0 0 * * 0"},
	{"@monthly", "0 0 1 * *"},
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
}

// fields is an expression that has been read: of each field the values as bits.
type fields struct {
	minutes, hours, days, months, weekdays uint64
	// Parts of the days' fields that depend on the month, as 15W and 1#2.
	dayParts, weekdayParts []string
	// eitherDay is true if one of the two days will do.
	eitherDay bool
	// anyHour is true if it goes by the time that passes.
	anyHour bool
}

// field is what a field may hold.
type field struct {
	name     string
	min, max int
	names    string // of the values from min on, three letters each
	place    int    // as gronx counts
}

var (
	minuteField  = field{name: "minute", max: 59}
	hourField    = field{name: "hour", max: 23}
	dayField     = field{name: "day of month", min: 1, max: 31, place: 3}
	monthField   = field{name: "month", min: 1, max: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}
	weekdayField = field{name: "day of week", max: 7, names: "SUNMONTUEWEDTHUFRISAT", place: 5}
)

// parse reads an expression. Errors: ErrCron, wrapped.
func parse(expression string) (*fields, error) {
	if len(expression) > expressionMax {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrCron, len(expression), expressionMax)
	}
	text := strings.ToUpper(strings.TrimSpace(expression))
	if strings.HasPrefix(text, "@") {
		for _, n := range names {
			if strings.EqualFold(n.name, text) {
				return parse(n.expression)
			}
		}
		return nil, fmt.Errorf("%w: no name %q", ErrCron, expression)
	}
	parts := strings.Fields(text)
	if len(parts) != 5 {
		return nil, fmt.Errorf("%w: %d fields, there are five: minute, hour, day of month, month, day of week", ErrCron, len(parts))
	}
	f := &fields{anyHour: parts[1][0] == '*'}
	for i, read := range []struct {
		field *field
		into  *uint64
		parts *[]string // nil: it may have none
	}{
		{&minuteField, &f.minutes, nil},
		{&hourField, &f.hours, nil},
		{&dayField, &f.days, &f.dayParts},
		{&monthField, &f.months, nil},
		{&weekdayField, &f.weekdays, &f.weekdayParts},
	} {
		if err := read.field.parse(parts[i], read.into, read.parts); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrCron, read.field.name, err)
		}
	}
	f.eitherDay = !open(parts[2]) && !open(parts[4])
	f.weekdays |= f.weekdays >> 7 & 1 // 7 is 0
	return f, nil
}

// open reports whether a field of days begins with a star, or the sign that
// stands for one.
func open(text string) bool { return text[0] == '*' || text[0] == '?' }

// parse reads the field.
func (f *field) parse(text string, into *uint64, parts *[]string) error {
	if text == "?" && parts != nil {
		text = "*"
	}
	for part := range strings.SplitSeq(text, ",") {
		if parts != nil && f.special(part) {
			*parts = append(*parts, part)
			continue
		}
		values, err := f.parsePart(part)
		if err != nil {
			return err
		}
		*into |= values
	}
	return nil
}

// parsePart reads a number or a range, with or without a step.
func (f *field) parsePart(part string) (values uint64, err error) {
	span, stepText, stepped := strings.Cut(part, "/")
	first, last, ranged := strings.Cut(span, "-")
	from, to := f.min, f.max
	if first != "*" || ranged {
		if from, err = f.value(first); err != nil {
			return 0, err
		}
		switch {
		case ranged:
			if to, err = f.value(last); err != nil {
				return 0, err
			}
			if to == 0 && f.max == weekdayField.max && from > 0 {
				to = weekdayField.max // FRI-SUN
			}
		case !stepped:
			to = from
		}
	}
	if from > to {
		return 0, fmt.Errorf("%q runs backwards", part)
	}
	step := 1
	if stepped {
		if step, err = number(stepText, 1, f.max); err != nil {
			return 0, fmt.Errorf("step %w", err)
		}
	}
	for v := from; v <= to; v += step {
		values |= 1 << v
	}
	return values, nil
}

// value reads a number or a name.
func (f *field) value(text string) (int, error) {
	if at := strings.Index(f.names, text); len(text) == 3 && at >= 0 && at%3 == 0 {
		return f.min + at/3, nil
	}
	return number(text, f.min, f.max)
}

// number reads a number from low to high.
func number(text string, low, high int) (int, error) {
	v, err := strconv.ParseUint(text, 10, 8)
	if err != nil || int(v) < low || int(v) > high {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, low, high)
	}
	return int(v), nil
}

// special reports whether the part depends on the month.
func (f *field) special(part string) bool {
	if f.place == dayField.place {
		day, isWork := strings.CutSuffix(part, "W")
		_, err := number(day, f.min, f.max)
		return part == "L" || isWork && err == nil
	}
	if day, isLast := strings.CutSuffix(part, "L"); isLast {
		_, err := number(day, f.min, f.max)
		return err == nil
	}
	day, nth, counted := strings.Cut(part, "#")
	_, err := number(day, f.min, f.max)
	_, nthErr := number(nth, 1, 5)
	return counted && err == nil && nthErr == nil
}

// matches reports whether the field, with those values and parts, has the day.
func (f *field) matches(values uint64, parts []string, value int, day time.Time) bool {
	if values>>value&1 == 1 {
		return true
	}
	if len(parts) == 0 {
		return false
	}
	var checker gronx.SegmentChecker
	checker.SetRef(day)
	for _, part := range parts {
		if due, err := checker.CheckDue(part, f.place); due && err == nil {
			return true
		}
	}
	return false
}

// onDay reports whether it runs on the day.
func (f *fields) onDay(day time.Time) bool {
	inMonth := dayField.matches(f.days, f.dayParts, day.Day(), day)
	inWeek := weekdayField.matches(f.weekdays, f.weekdayParts, int(day.Weekday()), day)
	if f.eitherDay {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// yearsMax bounds how far ahead a time is looked for: the 29th of February is on
// each day of the week once in 40 years.
const yearsMax = 50

// onWall returns the first time at from or later, on a wall whose clock never
// jumps; ok false if there is none.
func (f *fields) onWall(from time.Time) (_ time.Time, ok bool) {
	if whole := from.Truncate(time.Minute); whole.Before(from) {
		from = whole.Add(time.Minute)
	}
	minutes := from.Hour()*60 + from.Minute()
	day := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, time.UTC)
	for last := day.Year() + yearsMax; day.Year() <= last; minutes = 0 {
		if f.months>>int(day.Month())&1 == 0 {
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		if f.onDay(day) {
			if at, ok := f.inDay(minutes); ok {
				return day.Add(time.Duration(at) * time.Minute), true
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

// inDay returns the first minute of the day, from or later, at which it runs.
func (f *fields) inDay(from int) (minute int, ok bool) {
	for hour := from / 60; hour < 24; hour++ {
		if f.hours>>hour&1 == 1 {
			if left := f.minutes >> (from % 60); left != 0 {
				return hour*60 + from%60 + bits.TrailingZeros64(left), true
			}
		}
		from = 0
	}
	return 0, false
}
