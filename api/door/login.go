package door

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

const (
	// LoginLife limits how long an unused login is valid.
	LoginLife = 12 * time.Hour
	// loginLifeMax limits how long a login in use is valid.
	loginLifeMax = 24 * time.Hour
	// loginRenewAfter is the age from which a cookie is renewed.
	loginRenewAfter = time.Hour

	loginVersion     = "v1"
	loginNumberBytes = 16
)

// Login says that a key was shown to the page. It has two halves, a cookie and a number, which are useless without each
// other. Both are signed with a secret of the cluster, so that every node can check them without a table. Of keys it
// knows only the name and SHA-256 (docs/adr/0032).
type Login struct {
	Name  string    // the key's name
	Begun time.Time // precise to a second
	// Expires is its end, precise to a second.
	Expires time.Time
	// Number is the half that is not in the cookie; the page keeps it and sends it in a header.
	Number string

	mac    []byte
	secret []byte // the secret that verified it
}

// NewLogin returns a login of a key at now, with a new number.
func NewLogin(name string, now time.Time) Login {
	var n [loginNumberBytes]byte
	_, _ = rand.Read(n[:]) // it never fails
	l := Login{Name: name, Begun: now.Truncate(time.Second), Number: base64.RawURLEncoding.EncodeToString(n[:])}
	l.Expires = l.Begun.Add(LoginLife)
	return l
}

// ReadLogin parses a login from its two halves. Use Good to verify it.
func ReadLogin(cookie, number []byte) (l Login, ok bool) {
	rest, ok := strings.CutPrefix(string(cookie), loginVersion+".")
	if !ok || len(number) == 0 {
		return l, false
	}
	// The name may contain dots.
	var fields [3]string // begun, expiry, MAC
	for i := len(fields) - 1; i >= 0; i-- {
		at := strings.LastIndexByte(rest, '.')
		if at < 0 {
			return l, false
		}
		rest, fields[i] = rest[:at], rest[at+1:]
	}
	begun, err1 := strconv.ParseInt(fields[0], 10, 64)
	expires, err2 := strconv.ParseInt(fields[1], 10, 64)
	mac, err3 := base64.RawURLEncoding.Strict().DecodeString(fields[2])
	if err1 != nil || err2 != nil || err3 != nil || rest == "" {
		return l, false
	}
	return Login{Name: rest, Begun: time.Unix(begun, 0), Expires: time.Unix(expires, 0), Number: string(number), mac: mac}, true
}

// Cookie returns the half for the cookie, for a key with that SHA-256.
func (l *Login) Cookie(secret []byte, key *[sha256.Size]byte) string {
	mac := base64.RawURLEncoding.EncodeToString(l.sum(secret, key))
	return loginVersion + "." + l.Name + "." + strconv.FormatInt(l.Begun.Unix(), 10) + "." + strconv.FormatInt(l.Expires.Unix(), 10) + "." + mac
}

// Good reports whether the login was made with that secret for a key with that SHA-256. It may have expired.
func (l *Login) Good(secret []byte, key *[sha256.Size]byte) bool {
	if len(secret) == 0 || !hmac.Equal(l.mac, l.sum(secret, key)) {
		return false
	}
	l.secret = secret
	return true
}

// Secret returns the secret that verified the login, or nil.
func (l *Login) Secret() []byte { return l.secret }

// Expired reports whether the login has expired.
func (l *Login) Expired(now time.Time) bool { return !now.Before(l.Expires) }

// Renewed returns the login with a later end. ok is false if it is too young to be renewed, or cannot be prolonged
// further.
func (l *Login) Renewed(now time.Time) (_ Login, ok bool) {
	to := *l
	to.Expires = now.Truncate(time.Second).Add(LoginLife)
	if last := l.Begun.Add(loginLifeMax); to.Expires.After(last) {
		to.Expires = last
	}
	return to, now.After(l.Expires.Add(loginRenewAfter-LoginLife)) && to.Expires.After(l.Expires)
}

// sum returns the MAC of the login. Fields cannot be confused with parts of others, because the first four contain no
// zero byte and the last two have a fixed length.
func (l *Login) sum(secret []byte, key *[sha256.Size]byte) []byte {
	h := hmac.New(sha256.New, secret)
	for _, field := range []string{"claimq page", l.Name, strconv.FormatInt(l.Begun.Unix(), 10), strconv.FormatInt(l.Expires.Unix(), 10)} {
		h.Write([]byte(field + "\x00"))
	}
	h.Write(key[:])
	h.Write([]byte(l.Number))
	return h.Sum(nil)
}

// textPrefix is the beginning of the text that represents a login in place of a key when a request is forwarded. It
// contains a space, which keys sent to a public port cannot have.
const textPrefix = "page "

// textMax bounds such a text.
const textMax = 256

// AppendLogin appends the text for a login with these two halves, or nothing if they cannot be valid.
func AppendLogin(b, cookie, number []byte) []byte {
	if len(cookie) == 0 || len(number) == 0 || len(textPrefix)+len(cookie)+1+len(number) > textMax || !plain(cookie) || !plain(number) {
		return b
	}
	b = append(append(b, textPrefix...), cookie...)
	return append(append(b, ' '), number...)
}

// plain reports whether a half consists of printable ASCII without spaces.
func plain(half []byte) bool {
	for _, c := range half {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// IsLogin reports whether text was made by AppendLogin.
func IsLogin(text []byte) bool {
	return bytes.HasPrefix(text, []byte(textPrefix)) && len(text) <= textMax
}

// LoginHalves returns the two halves of a text made by AppendLogin.
func LoginHalves(text []byte) (cookie, number []byte) {
	cookie, number, _ = bytes.Cut(text[len(textPrefix):], []byte{' '})
	return cookie, number
}
