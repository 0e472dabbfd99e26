package peer

import (
	"crypto/hmac"
	"crypto/sha256"
)

// JoinKeys are the secrets with which nodes show that they belong together. A node shows
// the first and accepts all. An empty key means none: the node shows nothing, and accepts
// nodes that show nothing. An empty list is the same as one empty key.
type JoinKeys [][]byte

// own returns the key that the node shows, or none.
func (k JoinKeys) own() []byte {
	if len(k) == 0 {
		return nil
	}
	return k[0]
}

// shows reports whether the node shows a key.
func (k JoinKeys) shows() bool { return len(k.own()) > 0 }

// TakesNone reports whether a node that shows no key is accepted.
func (k JoinKeys) TakesNone() bool {
	for _, key := range k {
		if len(key) == 0 {
			return true
		}
	}
	return len(k) == 0
}

// TakesSome reports whether some key is accepted.
func (k JoinKeys) TakesSome() bool {
	for _, key := range k {
		if len(key) > 0 {
			return true
		}
	}
	return false
}

// showed reports whether mac proves one of the keys or, if the other side claims to show
// none (some is false), whether it is accepted without one.
func (k JoinKeys) showed(mac []byte, some bool, said []byte) bool {
	if !some {
		return k.TakesNone() && hmac.Equal(mac, macOf(nil, said))
	}
	for _, key := range k {
		if len(key) > 0 && hmac.Equal(mac, macOf(key, said)) {
			return true
		}
	}
	return false
}

// macOf returns the proof of the key for the bytes said.
func macOf(key, said []byte) []byte {
	if len(key) == 0 {
		return make([]byte, macSize)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(said)
	return mac.Sum(nil)
}
