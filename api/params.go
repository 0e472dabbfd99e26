package api

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/claimq/claimq/api/codec"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// splitURI splits a request's target into path and query. The scheme and host of an absolute form, and a fragment,
// are cut off.
func splitURI(uri []byte) (path, query []byte) {
	if len(uri) > 0 && uri[0] != '/' {
		if _, after, ok := bytes.Cut(uri, []byte("://")); ok {
			uri = after[min(len(after), max(0, bytes.IndexByte(after, '/'))):]
		}
	}
	uri, _, _ = bytes.Cut(uri, []byte{'#'})
	path, query, _ = bytes.Cut(uri, []byte{'?'})
	return path, query
}

// printable reports whether a target has no spaces or control characters, so that it can be sent in a header.
func printable(uri []byte) bool {
	for _, c := range uri {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// asked holds what a request asks for in its query and headers, and the ops of a batch.
type asked struct {
	params   []param      // the call's own parameters
	stale    bool         // consistency=stale
	minIndex uint64       // of the state that it reads
	ops      *codec.Batch // the decoded batch; nil: not decoded yet
}

// param is one query parameter, decoded.
type param struct{ name, value string }

// Parameters that may be given several times.
const (
	paramLabel = "label"
	paramEvent = "event"
	paramParam = "param"
)

// parseQuery decodes a query strictly: each parameter once, except label, event and param, with valid percent-encoding and
// UTF-8. A name without = has the value "".
func parseQuery(query []byte) ([]param, *refuse.Refusal) {
	var params []param
	for len(query) > 0 {
		var part []byte
		part, query, _ = bytes.Cut(query, []byte{'&'})
		if len(part) == 0 {
			continue
		}
		rawName, rawValue, _ := bytes.Cut(part, []byte{'='})
		name, ok := unescape(rawName, true)
		if !ok {
			return nil, refuse.Param("", "A query parameter's name is not percent-encoded UTF-8")
		}
		value, ok := unescape(rawValue, true)
		if !ok {
			return nil, refuse.Param(jsonout.Shorten(name), "Invalid "+jsonout.Shorten(name)+": must be percent-encoded UTF-8")
		}
		for _, p := range params {
			if p.name == name && name != paramLabel && name != paramEvent && name != paramParam {
				return nil, refuse.Param(jsonout.Shorten(name), "Repeated query parameter: "+jsonout.Shorten(name))
			}
		}
		params = append(params, param{name, value})
	}
	return params, nil
}

// unescape decodes percent-encoding and, with plus, + as a space. ok is false for an invalid encoding or invalid
// UTF-8.
func unescape(b []byte, plus bool) (s string, ok bool) {
	unescape := url.PathUnescape
	if plus {
		unescape = url.QueryUnescape
	}
	s, err := unescape(string(b))
	return s, err == nil && utf8.ValidString(s)
}

// noParams refuses a request with parameters if its call has none. ok is false if it was refused.
func (r *request) noParams() (ok bool) {
	bad := refuseQuery(r.asked.params)
	if bad != nil {
		r.refuse(bad)
	}
	return bad == nil
}

// params are the parameters of a call, with the function that reads each of them.
type params map[string]func(p param) *refuse.Refusal

// readParams reads the call's own parameters in turn, until one is refused.
func (r *request) readParams(known params) *refuse.Refusal {
	for _, p := range r.asked.params {
		read := known[p.name]
		if read == nil {
			return unknownParam(p.name)
		}
		if bad := read(p); bad != nil {
			return bad
		}
	}
	return nil
}

// refuseQuery refuses the first parameter of a call that has none.
func refuseQuery(params []param) *refuse.Refusal {
	if len(params) == 0 {
		return nil
	}
	return unknownParam(params[0].name)
}

// unknownParam refuses a parameter that the call does not have.
func unknownParam(name string) *refuse.Refusal {
	return refuse.New("invalid_request", "Unknown query parameter: "+jsonout.Shorten(name),
		"Remove it, or check its spelling").At(jsonout.Shorten(name))
}

// readParam reads a parameter of a call.
type readParam = func(p param) *refuse.Refusal

func badParam(name, allowed string) *refuse.Refusal {
	return refuse.Param(name, "Invalid "+name+": must be "+allowed)
}

// parsedParam sets v to the parsed parameter; allowed describes the valid values.
func parsedParam[T any](v *T, allowed string, parse func(text string) (T, bool)) readParam {
	return func(p param) *refuse.Refusal {
		var ok bool
		if *v, ok = parse(p.value); !ok {
			return badParam(p.name, allowed)
		}
		return nil
	}
}

// textParam sets text to the parameter if it is valid.
func textParam(text *string, allowed string, valid func(text string) bool) readParam {
	return parsedParam(text, allowed, func(s string) (string, bool) { return s, valid(s) })
}

// boolParam sets v to a parameter that is true or false.
func boolParam(v *bool) readParam {
	return parsedParam(v, "true or false", func(text string) (is, ok bool) { return text == "true", text == "true" || text == "false" })
}

// typeParam sets name to a parameter that is a task type.
func typeParam(name *string) readParam {
	return textParam(name, wire.TaskTypeAllowed, wire.ValidTaskType[string])
}

// holderParam sets id to a parameter that names a worker or a processor.
func holderParam(id *string) readParam {
	return func(p param) *refuse.Refusal {
		if *id = p.value; !wire.ValidWorkerID(p.value) {
			return codec.RefuseHolderID(p.name)
		}
		return nil
	}
}

// createdParam sets ms to a time; before says that it is an upper bound.
func createdParam(ms *int64, before bool) readParam {
	return parsedParam(ms, wire.CreatedAllowed, func(text string) (int64, bool) { return codec.ParseCreated(text, before) })
}

// countParam sets n to a parameter that is an integer from 1 to most.
func countParam(n *int, most int) readParam {
	return func(p param) *refuse.Refusal {
		count, ok := wire.ParseInteger(p.value, 1, int64(most))
		if !ok {
			return badParam(p.name, "an integer from 1 to "+strconv.Itoa(most))
		}
		*n = int(count)
		return nil
	}
}

// A cursor names the next task and, if the list is ordered by end, when that task ended. The task may be of any type.
// A key with task_types therefore gets the cursor encrypted, with a key that all nodes derive from the secret of
// logins, so that any node can continue until a restore removes the secret.

// cursorBytes is the length to which a cursor is padded before it is encrypted, so that its length reveals nothing.
// The longest is e, 13 digits of a time, a point and 11 of an id.
const cursorBytes = 32

// sealCursor returns the cursor in the form that the request's key gets. ok is false if the request was already
// answered.
func sealCursor(r *request, cursor string) (_ string, ok bool) {
	if cursor == "" || !r.narrowed() {
		return cursor, true
	}
	secret, err := r.pageSecret()
	if err == nil && secret == nil {
		secret, err = makeCursorSecret(r)
	}
	if err != nil {
		r.refuseError(err)
		return "", false
	}
	var plain [cursorBytes]byte
	copy(plain[:], cursor)
	return base64.RawURLEncoding.EncodeToString(cursorCipher(secret).Seal(nil, nil, plain[:], nil)), true
}

// makeCursorSecret lets the leader create a secret in the state.
func makeCursorSecret(r *request) (secret []byte, err error) {
	var random [command.PageSecretBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	if _, err = r.node().Propose(r.ctx(), command.SetPageSecret{Secret: random[:]}); err == nil {
		secret, err = r.pageSecret() // another request may have made one before
	}
	if err == nil && secret == nil {
		err = nodes.ErrOverloaded // a restore has removed it
	}
	return secret, err
}

// openCursor decodes the request's cursor.
func openCursor(r *request, text, allowed string) (string, *refuse.Refusal) {
	if text == "" || !r.narrowed() {
		return text, nil
	}
	secret, err := r.pageSecret()
	switch {
	case err != nil:
		return "", refuse.Because(refuse.CodeOf(err, false))
	case secret == nil && !r.node().IsLeader():
		return "", refuse.Because(wire.CodeNoLeader) // this node may not know the secret yet
	case secret == nil:
		return "", badParam("cursor", allowed)
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", badParam("cursor", allowed)
	}
	plain, err := cursorCipher(secret).Open(nil, nil, box, nil)
	if err != nil {
		return "", badParam("cursor", allowed)
	}
	return string(bytes.TrimRight(plain, "\x00")), nil
}

func cursorCipher(secret []byte) cipher.AEAD {
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
