package sqs

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/claimq/claimq/fsm/command"
)

// A receipt handle identifies the claim of a task, so each receive of a message has another one. It is opaque to
// clients, and valid only for its queue.

// handleVersion is the first byte of a receipt handle.
const handleVersion = 1

// handleCheck is the number of bytes of a handle's checksum, which includes the queue's name.
const handleCheck = 8

// handleOf returns the receipt handle of a claim.
func handleOf(queue string, h command.Hold) string {
	b := append(make([]byte, 0, 128), handleVersion)
	b = binary.AppendUvarint(b, h.ID)
	b = binary.AppendUvarint(b, h.Token)
	b = append(b, h.WorkerID...)
	sum := checkOf(queue, b)
	var text [256]byte
	return string(base64.RawURLEncoding.AppendEncode(text[:0], append(b, sum[:]...)))
}

func checkOf(queue string, b []byte) (check [handleCheck]byte) {
	sum := sha256.Sum256(append(append(append(make([]byte, 0, 256), queue...), 0), b...))
	copy(check[:], sum[:])
	return check
}

// readHandle is the inverse of handleOf. ok is false for anything but a handle of the queue.
func readHandle(queue, handle string) (h command.Hold, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(handle)
	if err != nil || strings.ContainsAny(handle, "\r\n") || len(b) <= handleCheck || b[0] != handleVersion {
		return h, false
	}
	b, check := b[:len(b)-handleCheck], b[len(b)-handleCheck:]
	if checkOf(queue, b) != [handleCheck]byte(check) {
		return h, false
	}
	var n, k int
	h.ID, n = binary.Uvarint(b[1:])
	if n <= 0 {
		return h, false
	}
	if h.Token, k = binary.Uvarint(b[1+n:]); k <= 0 {
		return h, false
	}
	h.WorkerID = string(b[1+n+k:])
	return h, h.ID != 0 && h.Token != 0 && h.WorkerID != ""
}
