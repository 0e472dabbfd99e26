package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
)

const (
	// joinKeysMax bounds the keys that a node has at once: an exchange needs two.
	joinKeysMax = 4
	// joinKeyBytesMin is the size of the shortest join key.
	joinKeyBytesMin = 32
)

// joinKeys are the secrets by which nodes show each other that they belong here: the
// first is what a node shows, and all are taken from others. An empty one is none: it
// shows nothing, and takes who shows nothing. No keys at all are that one.
type joinKeys [][]byte

// own returns the key that the node shows, empty for none.
func (k joinKeys) own() []byte {
	if len(k) == 0 {
		return nil
	}
	return k[0]
}

// shows reports whether the node shows a key.
func (k joinKeys) shows() bool { return len(k.own()) > 0 }

// takesNone reports whether somebody who shows no key is taken.
func (k joinKeys) takesNone() bool {
	for _, key := range k {
		if len(key) == 0 {
			return true
		}
	}
	return len(k) == 0
}

// takesSome reports whether there is a key that somebody can show.
func (k joinKeys) takesSome() bool {
	for _, key := range k {
		if len(key) > 0 {
			return true
		}
	}
	return false
}

// showed reports whether mac is what somebody shows who has one of the keys, or, if he
// says that he shows none, is taken without.
func (k joinKeys) showed(mac []byte, some bool, said []byte) bool {
	if !some {
		return k.takesNone() && hmac.Equal(mac, macOf(nil, said))
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

// joinKeys returns the keys of now.
func (c *Config) joinKeys() joinKeys {
	if c.JoinKeys == nil {
		return nil
	}
	return c.JoinKeys()
}

// CheckJoinKeys says why a node cannot have these join keys: there are too many, one is
// too short or, beyond loopback, somebody without one is taken, and neither
// a PeerCertificate that is required of all nor Insecure allows that.
func (c *Config) CheckJoinKeys(keys [][]byte) error {
	if len(keys) > joinKeysMax {
		return fmt.Errorf("there are %d join keys, %d are allowed", len(keys), joinKeysMax)
	}
	for _, key := range keys {
		if len(key) > 0 && len(key) < joinKeyBytesMin {
			return fmt.Errorf("the join key has %d characters, it must have %d or more", len(key), joinKeyBytesMin)
		}
	}
	tlsRequired := c.PeerCertificate != nil && c.PeerTLSMode == TLSRequired
	if !joinKeys(keys).takesNone() || tlsRequired || c.Insecure || isLoopback(hostOf(c.PeerAddr)) {
		return nil
	}
	if joinKeys(keys).takesSome() {
		return errors.New("a line `none` among the join keys lets in who has none, and peer address " + c.PeerAddr + " is not a loopback address: it needs mutual TLS that is required, or --insecure")
	}
	if c.PeerCertificate != nil {
		return fmt.Errorf("peer address %s is not a loopback address, and connections without TLS are taken there (--peer-tls-mode): give --join-key-file, or --insecure", c.PeerAddr)
	}
	return fmt.Errorf("peer address %s is not a loopback address, and there is neither mutual TLS nor a join key: give --peer-tls-cert-file and the rest, or --join-key-file, or --insecure", c.PeerAddr)
}
