package jsonout

import "time"

// Time appends milliseconds since the Unix epoch as RFC 3339 in UTC with
// milliseconds, quoted; null for 0.
func Time(b []byte, ms int64) []byte {
	if ms == 0 {
		return append(b, "null"...)
	}
	const dayMS = 86_400_000
	const farMS = 253_402_300_800_000 // the year 10000
	if ms < 0 || ms >= farMS {
		return time.UnixMilli(ms).UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z"`)
	}
	year, month, day := time.UnixMilli(ms).UTC().Date()
	left := int(ms % dayMS)
	const zeros = `"0000-00-00T00:00:00.000Z"`
	b = append(b, zeros...)
	text := (*[len(zeros)]byte)(b[len(b)-len(zeros):])
	text[1], text[2] = digits(year / 100)
	text[3], text[4] = digits(year % 100)
	text[6], text[7] = digits(int(month))
	text[9], text[10] = digits(day)
	text[12], text[13] = digits(left / 3_600_000)
	text[15], text[16] = digits(left / 60_000 % 60)
	text[18], text[19] = digits(left / 1_000 % 60)
	text[21] = byte('0' + left%1_000/100)
	text[22], text[23] = digits(left % 100)
	return b
}

// digits returns the two digits of a number below 100.
func digits(n int) (tens, ones byte) { return byte('0' + n/10), byte('0' + n%10) }
