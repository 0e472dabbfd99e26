package jsonout

import (
	"strconv"
	"strings"
)

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
