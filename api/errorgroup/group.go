package errorgroup

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// ID identifies a group of failed tasks: a hash of the task type and the signature, so that
// every node of the same version has the same. 0 means no group.
type ID uint64

// IDAllowed describes what ParseID accepts.
const IDAllowed = "16 hexadecimal digits in lower case, as GET /api/failures shows a group,"

const idDigits = 16

// Of returns the group of a task of that type that failed with that error.
func Of[T string | []byte](taskType, err T) ID {
	var room [512]byte
	return idOf(appendSignature(append(append(room[:0], taskType...), 0), err))
}

// Has reports whether a task of that type that failed with that error is of the group.
func (id ID) Has(taskType, err []byte) bool { return Of(taskType, err) == id }

// idOf hashes a type, a zero byte, and a signature.
func idOf(of []byte) ID {
	sum := sha256.Sum256(of)
	return max(ID(binary.BigEndian.Uint64(sum[:])), 1)
}

// String returns the id as the API shows it.
func (id ID) String() string {
	digits := strconv.FormatUint(uint64(id), 16)
	return strings.Repeat("0", idDigits-len(digits)) + digits
}

// ParseID is the inverse of ID.String. ok is false for any other text.
func ParseID(text string) (id ID, ok bool) {
	n, err := strconv.ParseUint(text, 16, 64)
	return ID(n), err == nil && n != 0 && ID(n).String() == text
}
