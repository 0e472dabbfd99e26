package jsonout

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// String appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func String[T ~string | ~[]byte](b []byte, s T) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[start:i]...), `\ufffd`...)
			i++
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		b = escaped(b, c)
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func escaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Comma appends a comma unless the array or object that began at start is still empty.
func Comma(b []byte, start int) []byte {
	if len(b) > start {
		return append(b, ',')
	}
	return b
}

// Micro is the factor of Decimal's unit: a million.
const Micro = 1_000_000

// Decimal appends a number that is given in millionths.
func Decimal(b []byte, n int64) []byte {
	b = strconv.AppendInt(b, n/Micro, 10)
	if n%Micro == 0 {
		return b
	}
	digits := strconv.Itoa(int(Micro + n%Micro))[1:]
	return append(append(b, '.'), strings.TrimRight(digits, "0")...)
}

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

// Cut returns at most most bytes of the beginning of text, without cutting a character.
func Cut[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Shorten limits how much an answer repeats of a name that the client chose.
func Shorten(name string) string {
	const most = 128
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}
