package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// expressionMax bounds the length of an expression, because the work for each month grows
// with it.
const expressionMax = 256

// names maps the names of expressions.
var names = [...]struct{ name, expression string }{
	{"@hourly", "0 * * * *"},
	{"@daily", "0 0 * * *"},
	{"@midnight", "0 0 * * *"},
	{"@weekly", "0 0 * * 0"},
	{"@monthly", "0 0 1 * *"},
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
}

// fields is a parsed expression, with the values of each field as bits.
type fields struct {
	minutes, hours, days, months, weekdays uint64
	// The days that depend on the month.
	dayRules     []dayRule
	weekdayRules []weekdayRule
	// eitherDay is true if one of the two days is enough.
	eitherDay bool
	// anyHour is true if the plan follows elapsed time.
	anyHour bool
}

// field says which values a field may have.
type field struct {
	name     string
	min, max int
	names    string // of the values from min on, three letters each
}

var (
	minuteField  = field{name: "minute", max: 59}
	hourField    = field{name: "hour", max: 23}
	dayField     = field{name: "day of month", min: 1, max: 31}
	monthField   = field{name: "month", min: 1, max: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}
	weekdayField = field{name: "day of week", max: 7, names: "SUNMONTUEWEDTHUFRISAT"}
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
		return nil, fmt.Errorf("%w: %q is none of @hourly, @daily, @weekly, @monthly and @yearly", ErrCron, expression)
	}
	parts := strings.Fields(text)
	if len(parts) != 5 {
		return nil, fmt.Errorf("%w: it must have five fields, minute, hour, day of month, month and day of week, and has %d", ErrCron, len(parts))
	}
	f := &fields{anyHour: parts[1][0] == '*'}
	for i, read := range []struct {
		field *field
		into  *uint64
		rule  func(part string) bool // nil: the field has no rules
	}{
		{&minuteField, &f.minutes, nil},
		{&hourField, &f.hours, nil},
		{&dayField, &f.days, f.addDayRule},
		{&monthField, &f.months, nil},
		{&weekdayField, &f.weekdays, f.addWeekdayRule},
	} {
		if err := read.field.parse(parts[i], read.into, read.rule); err != nil {
			return nil, fmt.Errorf("%w: the %s has %w", ErrCron, read.field.name, err)
		}
	}
	f.eitherDay = !open(parts[2]) && !open(parts[4])
	f.weekdays |= f.weekdays >> 7 & 1 // 7 is 0
	return f, nil
}

// open reports whether a field of days begins with a star or a question mark, which means
// the same.
func open(text string) bool { return text[0] == '*' || text[0] == '?' }

// addDayRule adds the part if it is a rule.
func (f *fields) addDayRule(part string) bool {
	r, ok := parseDayRule(part)
	if ok {
		f.dayRules = append(f.dayRules, r)
	}
	return ok
}

// addWeekdayRule adds the part if it is a rule.
func (f *fields) addWeekdayRule(part string) bool {
	r, ok := parseWeekdayRule(part)
	if ok {
		f.weekdayRules = append(f.weekdayRules, r)
	}
	return ok
}

// parse reads the field. rule handles the parts that are not numbers.
func (f *field) parse(text string, into *uint64, rule func(part string) bool) error {
	if text == "?" && rule != nil {
		text = "*"
	}
	for part := range strings.SplitSeq(text, ",") {
		if rule != nil && rule(part) {
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
		return 0, fmt.Errorf("%q, which runs backwards", part)
	}
	step := 1
	if stepped {
		if step, err = number(stepText, 1, f.max); err != nil {
			return 0, fmt.Errorf("the step %w", err)
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
	n, err := number(text, f.min, f.max)
	if err != nil && f.names != "" {
		err = fmt.Errorf("%w or a name from %s to %s", err, f.names[:3], f.names[len(f.names)-3:])
	}
	return n, err
}

// number reads a number from low to high.
func number(text string, low, high int) (int, error) {
	v, err := strconv.ParseUint(text, 10, 8)
	if err != nil || int(v) < low || int(v) > high {
		return 0, fmt.Errorf("%q, which is not a number from %d to %d", text, low, high)
	}
	return int(v), nil
}

// dayRule is a day that depends on the month: the working day nearest to that day, or the
// last day of the month if it is 0.
type dayRule int

// weekdayRule is a day that depends on the month: the nth such day of the week, or the last
// one if nth is 0.
type weekdayRule struct{ weekday, nth int }

// parseDayRule reads L or 15W; ok is false if it is something else.
func parseDayRule(part string) (_ dayRule, ok bool) {
	text, isWork := strings.CutSuffix(part, "W")
	day, err := number(text, dayField.min, dayField.max)
	return dayRule(day), part == "L" || isWork && err == nil
}

// parseWeekdayRule reads 5L or 1#2; ok is false if it is something else.
func parseWeekdayRule(part string) (_ weekdayRule, ok bool) {
	text, isLast := strings.CutSuffix(part, "L")
	text, nthText, counted := strings.Cut(text, "#")
	weekday, err := number(text, weekdayField.min, weekdayField.max)
	nth, nthErr := number(nthText, 1, 5)
	return weekdayRule{weekday % 7, nth}, err == nil && (isLast && !counted || !isLast && counted && nthErr == nil)
}

// month holds what rules need to know of a month: the weekday of its first day, where
// Sunday is 0, and its last day.
type month struct{ first, last int }

func monthOf(year int, m time.Month) month {
	return month{
		first: int(time.Date(year, m, 1, 0, 0, 0, 0, time.UTC).Weekday()),
		last:  time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day(),
	}
}

func (m month) weekday(day int) int { return (m.first + day - 1) % 7 }

// day returns the day that the rule selects, or 0 if the month has no such day.
func (r dayRule) day(m month) int {
	day := int(r)
	switch {
	case day == 0:
		return m.last
	case day > m.last:
		return 0
	case m.weekday(day) == 6 && day == 1:
		return 3
	case m.weekday(day) == 6:
		return day - 1
	case m.weekday(day) == 0 && day == m.last:
		return day - 2
	case m.weekday(day) == 0:
		return day + 1
	}
	return day
}

// day returns the day that the rule selects, or 0 if the month has no such day.
func (r weekdayRule) day(m month) int {
	first := 1 + (r.weekday-m.first+7)%7
	if r.nth == 0 {
		return first + (m.last-first)/7*7
	}
	day := first + (r.nth-1)*7
	if day > m.last {
		return 0
	}
	return day
}

// daysOf returns the days of the month on which the plan runs, as bits.
func (f *fields) daysOf(m month) uint64 {
	inMonth, inWeek := f.days, uint64(0)
	for _, r := range f.dayRules {
		inMonth |= 1 << r.day(m)
	}
	for day := 1; day <= m.last; day++ {
		inWeek |= f.weekdays >> m.weekday(day) & 1 << day
	}
	for _, r := range f.weekdayRules {
		inWeek |= 1 << r.day(m)
	}
	all := uint64(1)<<(m.last+1) - 2 // bit 0 is not a day
	if f.eitherDay {
		return (inMonth | inWeek) & all
	}
	return inMonth & inWeek & all
}

// yearsMax bounds the search for a time: February 29th falls on each day of the week once
// in 40 years.
const yearsMax = 50

// onWall returns the first time at from or later by a clock that never jumps; ok is false
// if there is no such time.
func (f *fields) onWall(from time.Time) (_ time.Time, ok bool) {
	if whole := from.Truncate(time.Minute); whole.Before(from) {
		from = whole.Add(time.Minute)
	}
	year, m, day := from.Date()
	minutes := from.Hour()*60 + from.Minute()
	for last := year + yearsMax; year <= last; {
		if f.months>>int(m)&1 == 1 {
			for days := f.daysOf(monthOf(year, m)) >> day << day; days != 0; days &= days - 1 {
				on := bits.TrailingZeros64(days)
				if on > day {
					minutes = 0
				}
				if at, ok := f.inDay(minutes); ok {
					return time.Date(year, m, on, 0, at, 0, 0, time.UTC), true
				}
			}
		}
		minutes, day = 0, 1
		if m++; m > time.December {
			year, m = year+1, time.January
		}
	}
	return time.Time{}, false
}

// inDay returns the first minute of the day, from or later, at which the plan runs.
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
