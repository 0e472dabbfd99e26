package api

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// A cursor names the next task and, if the list is ordered by end, when that task ended. The task may be of any type.
// A key with task_types therefore gets the cursor encrypted, with a key that all nodes derive from the secret of
// logins, so that any node can continue until a restore removes the secret.

// cursorBytes is the length to which a cursor is padded before it is encrypted, so that its length reveals nothing.
// The longest is e, 13 digits of a time, a point and 11 of an id.
const cursorBytes = 32

// sealCursor returns the cursor in the form that the request's key gets. ok is false if the request was already
// answered.
func sealCursor(r *exchange.Request, cursor string) (_ string, ok bool) {
	if cursor == "" || !r.Narrowed() {
		return cursor, true
	}
	secret, err := r.Server.PageSecret()
	if err == nil && secret == nil {
		secret, err = makeCursorSecret(r)
	}
	if err != nil {
		r.RefuseError(err)
		return "", false
	}
	var plain [cursorBytes]byte
	copy(plain[:], cursor)
	return base64.RawURLEncoding.EncodeToString(cursorSeal(secret).Seal(nil, nil, plain[:], nil)), true
}

// makeCursorSecret lets the leader create a secret in the state.
func makeCursorSecret(r *exchange.Request) (secret []byte, err error) {
	var random [command.PageSecretBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	if _, err = r.Server.Node.Propose(r.Wait(), command.SetPageSecret{Secret: random[:]}); err == nil {
		secret, err = r.Server.PageSecret() // another request may have made one before
	}
	if err == nil && secret == nil {
		err = nodes.ErrOverloaded // a restore has removed it
	}
	return secret, err
}

// openCursor decodes the request's cursor.
func openCursor(r *exchange.Request, text, allowed string) (string, *refuse.Refusal) {
	if text == "" || !r.Narrowed() {
		return text, nil
	}
	secret, err := r.Server.PageSecret()
	switch {
	case err != nil:
		return "", refuse.Because(refuse.CodeOf(err, false))
	case secret == nil && !r.Server.Node.IsLeader():
		return "", refuse.Because(wire.CodeNoLeader) // this node may not know the secret yet
	case secret == nil:
		return "", badParam("cursor", allowed)
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", badParam("cursor", allowed)
	}
	plain, err := cursorSeal(secret).Open(nil, nil, box, nil)
	if err != nil {
		return "", badParam("cursor", allowed)
	}
	return string(bytes.TrimRight(plain, "\x00")), nil
}

// cursorSeal returns the cipher for cursors.
func cursorSeal(secret []byte) cipher.AEAD {
	key := hmac.New(sha256.New, secret)
	key.Write([]byte("cursor"))
	block, err := aes.NewCipher(key.Sum(nil))
	if err != nil {
		panic(err) // the key has the right length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return aead
}
