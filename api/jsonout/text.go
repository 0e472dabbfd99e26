package jsonout

import (
	"encoding/base64"
	"unicode/utf8"
)

// Raw appends a field that is JSON already, nothing if it is nil.
func Raw(b []byte, name string, raw []byte) []byte {
	if raw == nil {
		return b
	}
	return append(append(b, name...), raw...)
}

// Base64 appends a field of bytes, nothing if it is nil.
func Base64(b []byte, name string, raw []byte) []byte {
	if raw == nil {
		return b
	}
	b = append(append(b, name...), '"')
	b = base64.StdEncoding.AppendEncode(b, raw)
	return append(b, '"')
}

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

// StringOrNull appends a string, null if it is empty.
func StringOrNull(b []byte, id string) []byte {
	if id == "" {
		return append(b, "null"...)
	}
	return String(b, id)
}

// Choice appends first, or second if other is true, as a string.
func Choice(b []byte, other bool, first, second string) []byte {
	if other {
		first = second
	}
	return String(b, first)
}

// Comma separates the elements of an array that began at start.
func Comma(b []byte, start int) []byte {
	if len(b) > start {
		return append(b, ',')
	}
	return b
}
