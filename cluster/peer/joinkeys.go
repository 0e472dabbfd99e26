package peer

import (
	"crypto/hmac"
	"crypto/sha256"
)

// JoinKeys are the secrets by which nodes show each other that they belong here: the
// first is what a node shows, and all are taken from others. An empty one is none: it
// shows nothing, and takes who shows nothing. No keys at all are that one.
type JoinKeys [][]byte

// own returns the key that the node shows, empty for none.
func (k JoinKeys) own() []byte {
	if len(k) == 0 {
		return nil
	}
	return k[0]
}

// shows reports whether the node shows a key.
func (k JoinKeys) shows() bool { return len(k.own()) > 0 }

// TakesNone reports whether somebody who shows no key is taken.
func (k JoinKeys) TakesNone() bool {
	for _, key := range k {
		if len(key) == 0 {
			return true
		}
	}
	return len(k) == 0
}

// TakesSome reports whether there is a key that somebody can show.
func (k JoinKeys) TakesSome() bool {
	for _, key := range k {
		if len(key) > 0 {
			return true
		}
	}
	return false
}

// showed reports whether mac is what somebody shows who has one of the keys, or, if he
// says that he shows none, is taken without.
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

// macOf returns what shows that somebody who said that has the key.
func macOf(key, said []byte) []byte {
	if len(key) == 0 {
		return make([]byte, macSize)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(said)
	return mac.Sum(nil)
}
