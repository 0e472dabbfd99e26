package exchange

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/internal/oidc"
)

// requestID appends the request's id to b: the given one if it is 1 to 128 bytes of printable ASCII, otherwise a new
// UUID of version 7.
func requestID(b, given []byte, now time.Time) []byte {
	if validRequestID(given) {
		return append(b, given...)
	}
	return appendUUID(b, now.UnixMilli(), rand.Uint64(), rand.Uint64())
}

// LoggedID returns a request's id for the log and the audit file. An id that contains a key, sent in the wrong
// header, is replaced.
func (s *Host) LoggedID(id []byte) string {
	keys := s.Keys.Load()
	if bytes.Contains(id, []byte(keyring.Prefix)) || oidc.IsToken(id) || keys != nil && keys.FindText(id) != nil {
		return "(not shown: it has an API key in it)"
	}
	return string(id)
}

func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > bound.RequestMax {
		return false
	}
	for _, c := range id {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// appendUUID appends a UUID of version 7: 48 bits of ms, then random bits. It is not a secret, so the random bits
// need not be cryptographic.
func appendUUID(b []byte, ms int64, r1, r2 uint64) []byte {
	var u [16]byte
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = 0x70 | byte(r1>>8)&0x0f
	u[7] = byte(r1)
	for i := range 8 {
		u[8+i] = byte(r2 >> (56 - 8*i))
	}
	u[8] = 0x80 | u[8]&0x3f
	for i, part := range [5][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}
