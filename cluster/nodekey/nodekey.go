// Package nodekey relates a node's key to its UUID. A node generates the key once and keeps
// it in its data folder; other nodes verify its UUID with it.
package nodekey

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/google/uuid"
)

// UUID returns the identity of the node with that public key: a version 8 UUID from its
// SHA-256. So Raft's configuration, and everything else that names a node by its UUID, also
// determines its key; a process without that key cannot be that node.
func UUID(public ed25519.PublicKey) string {
	return UUIDOfHash(sha256.Sum256(append([]byte("claimq node 1\n"), public...)))
}

// UUIDOfHash returns a version 8 UUID from the beginning of a hash.
func UUIDOfHash(hash [sha256.Size]byte) string {
	var id uuid.UUID
	copy(id[:], hash[:])
	id[6] = id[6]&0x0f | 0x80 // version 8: vendor's own
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id.String()
}

// Encode returns a public key in base64, for messages.
func Encode(public ed25519.PublicKey) string {
	return base64.RawStdEncoding.EncodeToString(public)
}

// Decode is the inverse of Encode.
func Decode(text string) (ed25519.PublicKey, error) {
	public, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("it is not the base64 of an Ed25519 key of %d bytes", ed25519.PublicKeySize)
	}
	return public, nil
}

// Public returns the public part of a node's key.
func Public(key ed25519.PrivateKey) ed25519.PublicKey {
	return key.Public().(ed25519.PublicKey)
}
