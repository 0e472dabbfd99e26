package jsonout

import (
	"strconv"
	"strings"
)

// Micro is how many millionths one is: the unit of Decimal.
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

// IntOrNull appends an integer, or null if it is not set.
func IntOrNull(b []byte, set bool, n int64) []byte {
	if !set {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, n, 10)
}

// UintOrNull appends a number, null if it is 0.
func UintOrNull(b []byte, n uint64) []byte {
	if n == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendUint(b, n, 10)
}
