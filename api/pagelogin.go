package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/login"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// wrongKeyWait is the time after which a wrong key is answered, so that the time of the check reveals nothing.
const wrongKeyWait = 200 * time.Millisecond

// ofPage refuses a call about a login, and returns false, if there is no page or the request comes from another
// origin. allowed_origins permits other origins to call the API, but not to log in or out.
func (s *Server) ofPage(r *exchange.Request) (ok bool) {
	switch {
	case s.cfg.Page.Off:
		r.Refuse(refuse.Because(wire.CodeNotFound))
	case exchange.Foreign(&r.HTTP.Request.Header):
		r.Refuse(s.host.Metrics.AuthFailures.Refuse(keyring.FailOrigin, exchange.RefuseOrigin("Origin")))
	default:
		return true
	}
	return false
}

// login answers POST /ui/login. For the very first login the leader creates the secret.
func (s *Server) login(r *exchange.Request) {
	if r.Forwarded { // by a node without the secret; the key is not included
		s.makeSecret(r)
		return
	}
	if !s.ofPage(r) {
		return
	}
	keys := s.host.Keys.Load()
	if keys == nil {
		r.Refuse(&refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "This server has no keys: everybody may do everything", Advice: "Go on without a login"})
		return
	}
	text, bad := decodeLogin(r)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	k, why, bad := keyOfLogin(keys, text, r)
	if k == nil {
		if retry, ok := s.tries.Try(r.Source(), int64(r.Start.Sub(s.host.Begun))); !ok {
			r.Refuse(refuse.New(wire.CodeRateLimited, "There were "+strconv.Itoa(keyring.TriesPerMinute)+" wrong keys within a minute from this address, and this is another one",
				"Repeat the login with a key that this server knows"))
			r.HTTP.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(keyring.Seconds(int64(retry)), 10))
			return
		}
	}
	if bad != nil {
		r.Barred = k
		s.waitWrong(r)
		r.Refuse(s.host.Metrics.AuthFailures.Refuse(why, bad))
		return
	}
	secret, ok := s.secretOf(r)
	if !ok {
		return
	}
	in := login.New(k.Name, r.Start)
	k.Used(r.Start, r.Source())
	r.SetCookie(in.Cookie(secret, &k.Sum))
	b := append(r.Body(), `{"success":true,"n":`...)
	b = jsonout.String(b, in.Number)
	b = s.appendMe(append(b, `,"me":`...), k, in.Expires)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// decodeLogin decodes the key from a login's body.
func decodeLogin(r *exchange.Request) (key []byte, bad *refuse.Refusal) {
	d := r.Decoder()
	defer d.Free()
	bad = d.Fields(func(name []byte) (bad *refuse.Refusal) {
		if string(name) != "key" {
			return d.Unknown(name)
		}
		var text []byte
		text, _, bad = d.Text("key", "an API key")
		key = bytes.Clone(text)
		return bad
	})
	if bad == nil && len(key) == 0 {
		bad = d.Missing("key")
	}
	return key, bad
}

// keyOfLogin returns the API key that the user logs in with. Tokens are not accepted, because they could not be
// renewed here before they end.
func keyOfLogin(keys *keyring.Ring, text []byte, r *exchange.Request) (k *keyring.Caller, why keyring.Failure, bad *refuse.Refusal) {
	if k = keys.FindText(text); k == nil {
		bad = keyring.Unauthorized("Unknown API key")
		bad.Advice = "Log in with an API key that this server knows; the page takes no tokens"
		return nil, keyring.FailUnknown, bad
	}
	why, bad = k.Bars(r.Start, r.Source())
	return k, why, bad
}

// waitWrong waits until a wrong key may be answered, or the server drains.
func (s *Server) waitWrong(r *exchange.Request) {
	wait, cancel := context.WithDeadline(s.host.Serving, r.Start.Add(wrongKeyWait))
	defer cancel()
	<-wait.Done()
}

// secretOf returns the secret of logins; the leader creates the first one. ok is false if the request was already
// answered.
func (s *Server) secretOf(r *exchange.Request) (secret []byte, ok bool) {
	secret, err := s.host.PageSecret()
	if err != nil {
		r.RefuseCode(err)
		return nil, false
	}
	if secret != nil {
		return secret, true
	}
	r.HTTP.Request.ResetBody() // do not forward the key
	if s.makeSecret(r); r.HTTP.Response.StatusCode() != fasthttp.StatusOK {
		return nil, false
	}
	index, err := strconv.ParseUint(string(r.HTTP.Response.Header.Peek(exchange.HeaderIndex)), 10, 64)
	r.ResetAnswer()
	if err != nil {
		r.Refuse(refuse.Because(wire.CodeInternal))
		return nil, false
	}
	return secret, r.ReadOn(index, func(m *fsm.Machine, _ fsm.Stamp) { secret = m.PageSecret() }) && s.there(r, secret)
}

// there reports whether the secret exists, and refuses the request if a restore has removed it.
func (s *Server) there(r *exchange.Request, secret []byte) bool {
	if secret == nil {
		r.Refuse(refuse.Because(wire.CodeOverloaded))
	}
	return secret != nil
}

// makeSecret creates a secret of logins in the state, and answers with its index. A follower leaves it to the leader.
func (s *Server) makeSecret(r *exchange.Request) {
	var random [command.PageSecretBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	p, err := s.cfg.Node.Propose(r.Wait(), command.SetPageSecret{Secret: random[:]})
	switch {
	case errors.Is(err, nodes.ErrNotLeader):
		r.Elsewhere()
	case err != nil:
		r.RefuseCode(err)
	default:
		r.SetIndex(p.Index)
		r.Send(fasthttp.StatusOK, append(r.Body(), `{"success":true}`...))
	}
}

// logout answers POST /ui/logout: the browser drops its cookie.
func (s *Server) logout(r *exchange.Request) {
	if !s.ofPage(r) {
		return
	}
	r.SetCookie("")
	r.Send(fasthttp.StatusOK, append(r.Body(), `{"success":true}`...))
}

// session answers GET /ui/session with what the page must know before its first call.
func (s *Server) session(r *exchange.Request) {
	if !s.ofPage(r) {
		return
	}
	site, ok := s.site(r)
	if !ok {
		return
	}
	keys, open := s.host.Keys.Load(), ""
	if keys == nil {
		if open = "loopback"; s.cfg.Insecure {
			open = "insecure"
		}
	}
	b := append(r.Body(), `{"success":true,"login":`...)
	b = strconv.AppendBool(b, keys != nil)
	b = jsonout.StringField(b, `,"open":`, open)
	b = jsonout.StringField(b, `,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.StringField(b, `,"version":`, s.cfg.Version)
	b = jsonout.StringField(b, `,"page":`, site.Hash())
	b = jsonout.BoolField(b, `,"read_only":`, s.cfg.Page.ReadOnly)
	b = append(b, `,"me":`...)
	if keys == nil {
		b = s.appendMe(b, &keyring.Caller{Roles: keyring.Operators}, time.Time{})
	} else if k, in, bad := s.visitor(r, keys); bad != nil {
		r.Refuse(bad)
		return
	} else if k == nil {
		b = append(b, "null"...)
	} else {
		b = s.appendMe(b, k, in.Expires)
	}
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// visitor returns the key that is logged in, or nil. The request is refused while this node cannot know yet.
func (s *Server) visitor(r *exchange.Request, keys *keyring.Ring) (*keyring.Caller, *login.Login, *refuse.Refusal) {
	text := s.host.PageKey(&r.HTTP.Request.Header)
	if len(text) == 0 {
		return nil, nil, nil
	}
	k, in, why, bad := s.host.Who(keys, text, r.Start)
	if bad == nil {
		why, bad = k.Bars(r.Start, r.Source())
	}
	switch {
	case bad == nil:
		return k, in, nil
	case why == keyring.FailUnchecked:
		return nil, nil, bad
	}
	return nil, nil, nil
}

// appendMe appends what a key may do on this node's page.
func (s *Server) appendMe(b []byte, k *keyring.Caller, expires time.Time) []byte {
	roles := k.Roles
	if s.cfg.Page.ReadOnly {
		roles = keyring.Readers
	}
	b = jsonout.StringField(b, `{"name":`, k.Name)
	b = jsonout.Strings(b, `,"roles":`, roles.Names())
	if len(k.Types) == 0 {
		b = jsonout.Null(b, `,"task_types":`)
	} else {
		b = jsonout.Strings(b, `,"task_types":`, k.Types)
	}
	end := ""
	if !expires.IsZero() {
		end = expires.UTC().Format(time.RFC3339)
	}
	return append(jsonout.StringOrNull(b, `,"expires_at":`, end), '}')
}
