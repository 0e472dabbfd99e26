// Package sigv4 checks the signatures that clients of Amazon make, AWS4-HMAC-SHA256, in a header or in a signed URL.
package sigv4

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is a request as it was sent, which a signature covers.
type Request struct {
	Method, Path, Query string
	// Header returns all values of a header, by its name in lower case, which are good until the next call.
	Header func(name string) [][]byte
	Sum    [sha256.Size]byte // of the body, whatever a header says
}

// Signature is the signature of a request, before it is checked.
type Signature struct {
	AccessKeyID string
	scope       []string // date, region, service, aws4_request
	headers     []string // the signed ones, in lower case and sorted
	sum         []byte
	at          time.Time
	stamp       string        // at, as sent
	expires     time.Duration // of a URL that was signed; 0: a header has the signature
}

const (
	algorithm = "AWS4-HMAC-SHA256"
	// stampForm is the form of the time in a signature.
	stampForm = "20060102T150405Z"
	// SkewMax is the largest difference between the clocks of client and server.
	SkewMax = 15 * time.Minute
	// presignedMaxS bounds how long a signed URL may be valid.
	presignedMaxS = 7 * 24 * 3600
)

// AccessKeyID returns the access key id in a header Authorization, "" if that is not a signature.
func AccessKeyID(authorization string) string {
	after, ok := strings.CutPrefix(authorization, algorithm)
	if !ok {
		return ""
	}
	_, credential, _ := strings.Cut(after, "Credential=")
	id, _, _ := strings.Cut(credential, "/")
	return id
}

// Read reads the signature of a request, from its header or its query. Errors: ErrNone, *IncompleteError.
func Read(r *Request) (*Signature, error) {
	if values := r.Header("authorization"); len(values) > 0 {
		return fromHeader(r, string(values[0]))
	}
	params, err := url.ParseQuery(r.Query)
	if err != nil || params.Get("X-Amz-Algorithm") == "" {
		return nil, ErrNone
	}
	return fromQuery(params)
}

// ErrNone is returned for a request without a signature.
var ErrNone = errors.New("the request has no signature")

// IncompleteError says what a signature lacks.
type IncompleteError struct{ Text string }

func (e *IncompleteError) Error() string { return e.Text }

// WrongError says that a signature does not match the request and the secret, or is not valid now.
type WrongError struct{ Text string }

func (e *WrongError) Error() string { return e.Text }

func incomplete(text string) error { return &IncompleteError{text} }

func wrong(text string) error { return &WrongError{text} }

func fromHeader(r *Request, authorization string) (*Signature, error) {
	rest, ok := strings.CutPrefix(authorization, algorithm+" ")
	if !ok {
		return nil, incomplete("Authorization must be a signature of " + algorithm + ".")
	}
	s := &Signature{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if err := s.set(name, value); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"x-amz-date", "date"} {
		if values := r.Header(name); s.stamp == "" && len(values) > 0 {
			s.stamp = string(values[0])
		}
	}
	return s, s.check()
}

func fromQuery(params url.Values) (*Signature, error) {
	s := &Signature{stamp: params.Get("X-Amz-Date")}
	if params.Get("X-Amz-Algorithm") != algorithm {
		return nil, incomplete("X-Amz-Algorithm must be " + algorithm + ".")
	}
	for _, name := range []string{"Credential", "SignedHeaders", "Signature"} {
		if err := s.set(name, params.Get("X-Amz-"+name)); err != nil {
			return nil, err
		}
	}
	seconds, err := strconv.ParseUint(params.Get("X-Amz-Expires"), 10, 32)
	if err != nil || seconds < 1 || seconds > presignedMaxS {
		return nil, incomplete("X-Amz-Expires must be 1 to " + strconv.Itoa(presignedMaxS) + " seconds.")
	}
	s.expires = time.Duration(seconds) * time.Second
	return s, s.check()
}

func (s *Signature) set(name, value string) error {
	var err error
	switch name {
	case "Credential":
		s.scope = strings.Split(value, "/")
		if n := len(s.scope); n < 5 || s.scope[0] == "" || s.scope[n-1] != "aws4_request" {
			return incomplete("Credential must be ID/DATE/REGION/SERVICE/aws4_request.")
		}
		n := len(s.scope) - 4 // an id may have slashes
		s.AccessKeyID, s.scope = strings.Join(s.scope[:n], "/"), s.scope[n:]
	case "SignedHeaders":
		s.headers = strings.Split(value, ";")
		if !slices.IsSorted(s.headers) || value != strings.ToLower(value) {
			return incomplete("SignedHeaders must be in lower case and sorted.")
		}
	case "Signature":
		if s.sum, err = hex.DecodeString(value); err != nil || len(s.sum) != sha256.Size {
			return incomplete("Signature must be 64 hex digits.")
		}
	}
	return nil
}

// check refuses a signature that lacks something.
func (s *Signature) check() error {
	var err error
	switch s.at, err = time.Parse(stampForm, s.stamp); {
	case s.AccessKeyID == "":
		return incomplete("The signature has no Credential.")
	case !slices.Contains(s.headers, "host"):
		return incomplete("SignedHeaders must have host.")
	case s.sum == nil:
		return incomplete("The signature is missing.")
	case err != nil:
		return incomplete("X-Amz-Date must be a time such as " + stampForm + ".")
	case s.scope[0] != s.stamp[:8]:
		return incomplete("The date of Credential is not that of X-Amz-Date.")
	}
	return nil
}

// Region returns the region that the client says it is in.
func (s *Signature) Region() string { return s.scope[1] }

// Keys caches the signing keys that are derived from a secret and the scope of a signature; each is used for a day. It
// is safe for concurrent use.
type Keys struct {
	mu sync.Mutex
	of map[string][]byte // by secret and scope
}

// keysMax bounds the keys that are kept. A client has one for each region that it names.
const keysMax = 1_000

// keep caches the key of a signature that was valid. Keys of invalid ones could fill the cache.
func (k *Keys) keep(name string, key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil || len(k.of) >= keysMax {
		k.of = make(map[string][]byte)
	}
	k.of[name] = key
}

func (k *Keys) get(name string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[name]
}

// Verify checks that the request was signed with the secret, and that the signature is valid now; otherwise it returns a
// *WrongError. A client that gets the refusal for its clock corrects it by the Date of the answer, and signs again.
func (s *Signature) Verify(r *Request, secret string, now time.Time, keys *Keys) error {
	scope := strings.Join(s.scope, "/")
	name := secret + "/" + scope
	key := keys.get(name)
	known := key != nil
	if !known {
		key = []byte("AWS4" + secret)
		for _, part := range s.scope {
			key = mac(key, part)
		}
	}
	canonical := sha256.Sum256(s.canonical(r))
	text := algorithm + "\n" + s.stamp + "\n" + scope + "\n" + hex.EncodeToString(canonical[:])
	if !hmac.Equal(mac(key, text), s.sum) {
		return wrong("The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	if !known {
		keys.keep(name, key)
	}
	last := s.at.Add(SkewMax)
	if s.expires > 0 {
		last = s.at.Add(s.expires)
	}
	switch {
	case now.After(last):
		return wrong("Signature expired: " + s.stamp + " is now earlier than what is accepted at " + now.UTC().Format(stampForm))
	case now.Before(s.at.Add(-SkewMax)):
		return wrong("Signature not yet current: " + s.stamp + " is still later than what is accepted at " + now.UTC().Format(stampForm))
	}
	return nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonical returns the request in the form in which it was signed.
func (s *Signature) canonical(r *Request) []byte {
	b := append(make([]byte, 0, 1024), r.Method...)
	b = append(append(append(b, '\n'), r.Path...), '\n')
	b = append(append(b, canonicalQuery(r.Query)...), '\n')
	for _, name := range s.headers {
		b = append(append(b, name...), ':')
		for i, v := range r.Header(name) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendTrimmed(b, v)
		}
		b = append(b, '\n')
	}
	b = append(b, '\n')
	for i, name := range s.headers {
		if i > 0 {
			b = append(b, ';')
		}
		b = append(b, name...)
	}
	return hex.AppendEncode(append(b, '\n'), r.Sum[:])
}

// appendTrimmed appends the value of a header without spaces at its ends, and with one space in place of several.
func appendTrimmed(b, value []byte) []byte {
	for i, word := range bytes.Fields(value) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, word...)
	}
	return b
}

// canonicalQuery returns a query sorted and encoded in one way, without the signature.
func canonicalQuery(query string) string {
	if query == "" {
		return ""
	}
	type pair struct{ name, value string }
	var pairs []pair
	for part := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(part, "=")
		if part != "" && rawName != "X-Amz-Signature" {
			pairs = append(pairs, pair{canonicalPart(rawName), canonicalPart(rawValue)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	return b.String()
}

// canonicalPart encodes what is already encoded, perhaps in another way.
func canonicalPart(raw string) string {
	s, err := url.QueryUnescape(raw)
	if err != nil {
		return raw // which matches no signature
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
