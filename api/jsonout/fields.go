// Package jsonout appends JSON to a buffer without reflection: strings, times, numbers, and shortened texts. It knows
// no tasks and no calls. Every function returns the extended buffer, allocates nothing else, and appends valid JSON
// in UTF-8 whatever its input is.
package jsonout

import (
	"encoding/base64"
	"strconv"
	"time"
)

// The functions of this file append a field: name, which includes the comma, the quotes and the colon, as `,"id":`,
// and the value.

// IntField appends an integer field.
func IntField(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// UintField appends an unsigned integer field.
func UintField(b []byte, name string, n uint64) []byte {
	return strconv.AppendUint(append(b, name...), n, 10)
}

// BoolField appends a boolean field.
func BoolField(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(append(b, name...), v)
}

// StringField appends a string field.
func StringField[T ~string | ~[]byte](b []byte, name string, s T) []byte {
	return String(append(b, name...), s)
}

// WordField appends a string field without anything to escape.
func WordField[T ~string](b []byte, name string, word T) []byte {
	b = append(append(b, name...), '"')
	return append(append(b, word...), '"')
}

// TimeField appends a Time field.
func TimeField(b []byte, name string, ms int64) []byte { return Time(append(b, name...), ms) }

// Moment appends a time, null if it is zero.
func Moment(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return Null(b, name)
	}
	return TimeField(b, name, t.UnixMilli())
}

// DecimalField appends a Decimal field.
func DecimalField(b []byte, name string, n int64) []byte { return Decimal(append(b, name...), n) }

// Null appends a null field.
func Null(b []byte, name string) []byte { return append(append(b, name...), "null"...) }

// IntOrNull appends an integer field, null if it is not set.
func IntOrNull(b []byte, name string, set bool, n int64) []byte {
	if !set {
		return Null(b, name)
	}
	return IntField(b, name, n)
}

// UintOrNull appends an unsigned integer field, null if it is 0.
func UintOrNull(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return Null(b, name)
	}
	return UintField(b, name, n)
}

// StringOrNull appends a string field, null if it is empty.
func StringOrNull(b []byte, name, s string) []byte {
	if s == "" {
		return Null(b, name)
	}
	return StringField(b, name, s)
}

// Choice appends first, or second if other is true.
func Choice(b []byte, name string, other bool, first, second string) []byte {
	if other {
		first = second
	}
	return WordField(b, name, first)
}

// Raw appends a field whose value is JSON already, or nothing if it is nil.
func Raw(b []byte, name string, raw []byte) []byte {
	if raw == nil {
		return b
	}
	return append(append(b, name...), raw...)
}

// Base64 appends bytes in base64, or nothing if they are nil.
func Base64(b []byte, name string, raw []byte) []byte {
	if raw == nil {
		return b
	}
	b = base64.StdEncoding.AppendEncode(append(append(b, name...), '"'), raw)
	return append(b, '"')
}

// List appends an array of n elements, each appended by element.
func List(b []byte, name string, n int, element func(b []byte, i int) []byte) []byte {
	b = append(append(b, name...), '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, i)
	}
	return append(b, ']')
}

// Strings appends an array of strings.
func Strings(b []byte, name string, texts []string) []byte {
	return List(b, name, len(texts), func(b []byte, i int) []byte { return String(b, texts[i]) })
}

// Uints appends an array of integers.
func Uints(b []byte, name string, ns []uint64) []byte {
	return List(b, name, len(ns), func(b []byte, i int) []byte { return strconv.AppendUint(b, ns[i], 10) })
}
