package fsm

// calendarText returns the time t, in milliseconds since the Unix epoch, as RFC
// 3339 in UTC with milliseconds. Years before 0 and past 9999 have as many
// digits as they need.
func calendarText(t int64) string {
	const day = 24 * 60 * 60 * 1000
	days, ms := t/day, t%day
	if ms < 0 {
		days, ms = days-1, ms+day
	}
	year, month, date := civil(days)
	b := make([]byte, 0, 32)
	b = append(appendPadded(b, year, 4), '-')
	b = append(appendPadded(b, month, 2), '-')
	b = append(appendPadded(b, date, 2), 'T')
	b = append(appendPadded(b, ms/3_600_000, 2), ':')
	b = append(appendPadded(b, ms/60_000%60, 2), ':')
	b = append(appendPadded(b, ms/1000%60, 2), '.')
	return string(append(appendPadded(b, ms%1000, 3), 'Z'))
}

// civil returns the date that is so many days after 1970-01-01, by the Gregorian
// calendar. It counts in years that begin in March, so that the leap day is the
// last, and in the 400 years after which the calendar repeats.
func civil(days int64) (year, month, date int64) {
	const era, century, leap, common = 146_097, 36_524, 1_461, 365
	days += 719_468 // since 0000-03-01
	eras := days / era
	if days %= era; days < 0 {
		days, eras = days+era, eras-1
	}
	centuries := min(days/century, 3)
	days -= centuries * century
	leaps := days / leap
	days -= leaps * leap
	years := min(days/common, 3)
	days -= years * common
	year = eras*400 + centuries*100 + leaps*4 + years
	month = (5*days + 2) / 153 // 0 = March; five months have 153 days
	date = days - (153*month+2)/5 + 1
	if month < 10 {
		return year, month + 3, date
	}
	return year + 1, month - 9, date
}

// appendPadded appends v with at least so many digits.
func appendPadded(b []byte, v int64, digits int) []byte {
	if v < 0 {
		b, v = append(b, '-'), -v
	}
	start := len(b)
	for n := v; n > 0 || len(b)-start < digits; n /= 10 {
		b = append(b, '0'+byte(n%10))
	}
	for i, j := start, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}
