package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/login"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// The names of the cookie: a browser lets nobody set the second but a page of https.
const (
	cookieName       = "claimq"
	secureCookieName = "__Host-claimq"
)

// wrongKeyWait is how long a wrong key is answered after it came: how long it took to find
// out says nothing then.
const wrongKeyWait = 200 * time.Millisecond

// cookiesMax bounds the cookies of a request that are taken for a login's: other ports of
// the host can set some of that name, too.
const cookiesMax = 4

// secretWait is how long after a login a node may not have the secret yet that was made for
// it at another one. Its answer is to be repeated then.
const secretWait = 10 * time.Second

// pageKey returns what stands for the key of a request of the page, empty if it has not
// logged in. A page of another origin, be it at another port of this host, is sent the cookie
// along with, but cannot send the header. Of several cookies the first that is good counts.
func (s *host) pageKey(h *fasthttp.RequestHeader) []byte {
	number := h.Peek(headerPage)
	if s.cfg.Page.Off || len(number) == 0 || foreign(h) {
		return nil // a page that allowed_origins has sends a key
	}
	var texts [][]byte
	for _, name := range []string{secureCookieName, cookieName} {
		for key, value := range h.Cookies() {
			if text := login.AppendText(nil, value, number); string(key) == name && len(text) > 0 && len(texts) < cookiesMax {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if keys := s.keys.Load(); keys != nil && len(texts) > 1 {
		for _, text := range texts {
			if _, _, _, bad := s.who(keys, text, time.Now()); bad == nil {
				return text
			}
		}
	}
	return texts[0]
}

// foreign reports whether a request says that a page of another origin sends it.
func foreign(h *fasthttp.RequestHeader) bool {
	origin := h.Peek(fasthttp.HeaderOrigin)
	return len(origin) > 0 && !sameOrigin(origin, h.Host())
}

// who returns the key that a text is or stands for; of what stands for one the login, too.
func (s *host) who(keys *keyring.Ring, text []byte, now time.Time) (k *keyring.Caller, in *login.Login, why keyring.Failure, bad *refuse.Refusal) {
	if !login.IsText(text) {
		k, why, bad = keys.Who(text, now)
		return k, nil, why, bad
	}
	ended := func(text string) *refuse.Refusal {
		return &refuse.Refusal{Code: wire.CodeUnauthorized, Text: text, Advice: "Log in at the page with a key that this server knows"}
	}
	l, ok := login.Read(login.Halves(text))
	if !ok {
		return nil, nil, keyring.FailMalformed, ended("The login is malformed")
	}
	secret, err := s.pageSecret()
	switch k = keys.Named(l.Name); {
	case err != nil || secret == nil && (s.node.Ready() != nil || l.Begun.After(now.Add(-secretWait))):
		// It does not know yet what it will.
		return nil, nil, keyring.FailUnchecked, refuse.Because(wire.CodeNoLeader)
	case k == nil || !l.Good(secret, &k.Sum):
		return nil, nil, keyring.FailUnknown, ended("The login is over: its key is known no more or has changed, or the cluster was restored")
	case l.Expired(now):
		return nil, nil, keyring.FailExpired, ended("The login has expired")
	}
	return k, &l, 0, nil
}

// pageSecret returns the secret of logins that this node's state has, nil if it has none.
func (s *host) pageSecret() (secret []byte, err error) {
	_, err = s.node.ReadStale(s.waits.at(time.Now()), 0, func(m *fsm.Machine, _ fsm.Stamp) { secret = m.PageSecret() })
	return secret, err
}

// fromPage refuses what a request of the page may not do beside what its key may not: to
// act without telling its origin, which every browser does, and to act at all where the
// page may read alone.
func (r *request) fromPage() *refuse.Refusal {
	if r.forwarded {
		return nil // the node that it reached has looked
	}
	if r.server.cfg.Page.ReadOnly {
		r.roles = keyring.Readers
	}
	h := &r.http.Request.Header
	if r.target.call.has(mutation) && !sameOrigin(h.Peek(fasthttp.HeaderOrigin), h.Host()) {
		return r.server.metrics.AuthFailures.Refuse(keyring.FailOrigin, refuseOrigin("Origin"))
	}
	return nil
}

// readOnlyOpen refuses a request of the page of a server without keys that may read alone.
func (r *request) readOnlyOpen() *refuse.Refusal {
	if !r.server.cfg.Page.ReadOnly || r.forwarded || len(r.http.Request.Header.Peek(headerPage)) == 0 || r.target.call.roles&keyring.Readers != 0 {
		return nil
	}
	return r.server.metrics.AuthFailures.Refuse(keyring.FailRole, keyring.NoRole(keyring.Readers, r.target.call.String(), r.target.call.roles))
}

// renewLogin gives the browser another cookie if its login is to go on.
func (r *request) renewLogin() {
	to, ok := r.in.Renewed(r.start)
	if !ok {
		return
	}
	r.setCookie(to.Cookie(r.in.Secret(), &r.who.Sum)) // the secret of now may be another cluster's
}

// setCookie sets the login's cookie, for as long as the browser is open; "" takes it away.
func (r *request) setCookie(value string) {
	var c fasthttp.Cookie
	c.SetKey(cookieName)
	// Behind a proxy that speaks TLS the node sees none; the browser says what it sees.
	if r.overTLS() || bytes.HasPrefix(r.http.Request.Header.Peek(fasthttp.HeaderOrigin), []byte("https://")) || len(r.http.Request.Header.Cookie(secureCookieName)) > 0 {
		c.SetKey(secureCookieName)
		c.SetSecure(true)
	}
	c.SetValue(value)
	c.SetPath("/")
	c.SetHTTPOnly(true)
	c.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	if value == "" {
		c.SetExpire(fasthttp.CookieExpireDelete)
	}
	r.http.Response.Header.SetCookie(&c)
}

// overTLS reports whether the request came over TLS.
func (r *request) overTLS() bool {
	conn, ok := r.http.Conn().(*port.Conn)
	return ok && conn.TLS()
}

// ofPage refuses a call about a login, and then ok is false, if there is no page, or if it is
// another origin's, which may call what allowed_origins lets it, but neither log in nor out.
func (s *Server) ofPage(r *request) (ok bool) {
	switch {
	case s.cfg.Page.Off:
		r.refuse(refuse.Because(wire.CodeNotFound))
	case foreign(&r.http.Request.Header):
		r.refuse(s.host.metrics.AuthFailures.Refuse(keyring.FailOrigin, refuseOrigin("Origin")))
	default:
		return true
	}
	return false
}

// login answers POST /ui/login. The first of all has the leader make the secret.
func (s *Server) login(r *request) {
	if r.forwarded { // by a node that has no secret, without the key
		s.makeSecret(r)
		return
	}
	if !s.ofPage(r) {
		return
	}
	keys := s.host.keys.Load()
	if keys == nil {
		r.refuse(&refuse.Refusal{Code: wire.CodeInvalidRequest, Text: "This server has no keys: everybody may do everything", Advice: "Go on without a login"})
		return
	}
	text, bad := decodeLogin(r)
	if bad != nil {
		r.refuse(bad)
		return
	}
	k, why, bad := keyOfLogin(keys, text, r)
	if k == nil {
		if retry, ok := s.tries.Try(r.source(), int64(r.start.Sub(s.host.begun))); !ok {
			r.refuse(&refuse.Refusal{
				Code: wire.CodeRateLimited, Text: "There were " + strconv.Itoa(keyring.TriesPerMinute) + " wrong keys within a minute from this address, and this is another one",
				Advice: "Repeat the login with a key that this server knows",
			})
			r.http.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(keyring.Seconds(int64(retry)), 10))
			return
		}
	}
	if bad != nil {
		r.barred = k
		s.waitWrong(r)
		r.refuse(s.host.metrics.AuthFailures.Refuse(why, bad))
		return
	}
	secret, ok := s.secretOf(r)
	if !ok {
		return
	}
	in := login.New(k.Name, r.start)
	k.Used(r.start, r.source())
	r.setCookie(in.Cookie(secret, &k.Sum))
	b := append(r.body(), `{"success":true,"n":`...)
	b = jsonout.String(b, in.Number)
	b = s.appendMe(append(b, `,"me":`...), k, in.Expires)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// decodeLogin reads the key out of a login's body.
func decodeLogin(r *request) (key []byte, bad *refuse.Refusal) {
	d := callbody.NewDecoder(r.http.Request.Body(), &r.server.cfg.Limits)
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

// keyOfLogin returns the key that somebody logs in with. A token is none: it ends before
// anybody could renew it here.
func keyOfLogin(keys *keyring.Ring, text []byte, r *request) (k *keyring.Caller, why keyring.Failure, bad *refuse.Refusal) {
	if k = keys.FindText(text); k == nil {
		bad = keyring.Unauthorized("Unknown API key")
		bad.Advice = "Log in with an API key that this server knows; the page takes no tokens"
		return nil, keyring.FailUnknown, bad
	}
	why, bad = k.Bars(r.start, r.source())
	return k, why, bad
}

// waitWrong waits until a wrong key may be answered, or the server drains.
func (s *Server) waitWrong(r *request) {
	wait, cancel := context.WithDeadline(s.host.serving, r.start.Add(wrongKeyWait))
	defer cancel()
	<-wait.Done()
}

// secretOf returns the secret of logins; the first one is made by the leader. ok is false if
// there is an answer already.
func (s *Server) secretOf(r *request) (secret []byte, ok bool) {
	secret, err := s.host.pageSecret()
	if err != nil {
		r.refuseCode(err)
		return nil, false
	}
	if secret != nil {
		return secret, true
	}
	r.http.Request.ResetBody() // the key goes no further
	if s.makeSecret(r); r.http.Response.StatusCode() != fasthttp.StatusOK {
		return nil, false
	}
	index, err := strconv.ParseUint(string(r.http.Response.Header.Peek(headerIndex)), 10, 64)
	r.resetAnswer()
	if err != nil {
		r.refuse(refuse.Because(wire.CodeInternal))
		return nil, false
	}
	return secret, r.readOn(index, func(m *fsm.Machine, _ fsm.Stamp) { secret = m.PageSecret() }) && s.there(r, secret)
}

// there reports whether there is a secret, and answers if not: a restore has taken it.
func (s *Server) there(r *request, secret []byte) bool {
	if secret == nil {
		r.refuse(refuse.Because(wire.CodeOverloaded))
	}
	return secret != nil
}

// makeSecret has the state have a secret of logins, and answers with the index of it; if
// this node does not lead, the leader does.
func (s *Server) makeSecret(r *request) {
	var random [fsm.PageSecretBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	p, err := s.cfg.Node.Propose(r.wait(), fsm.SetPageSecret{Secret: random[:]})
	switch {
	case errors.Is(err, fsm.ErrNotLeader):
		r.elsewhere()
	case err != nil:
		r.refuseCode(err)
	default:
		r.setIndex(p.Index)
		r.send(fasthttp.StatusOK, append(r.body(), `{"success":true}`...))
	}
}

// logout answers POST /ui/logout: the browser forgets its half.
func (s *Server) logout(r *request) {
	if !s.ofPage(r) {
		return
	}
	r.setCookie("")
	r.send(fasthttp.StatusOK, append(r.body(), `{"success":true}`...))
}

// session answers GET /ui/session: what the page must know before its first call.
func (s *Server) session(r *request) {
	if !s.ofPage(r) {
		return
	}
	site, ok := s.site(r)
	if !ok {
		return
	}
	keys, open := s.host.keys.Load(), ""
	if keys == nil {
		if open = "loopback"; s.cfg.Insecure {
			open = "insecure"
		}
	}
	b := append(r.body(), `{"success":true,"login":`...)
	b = strconv.AppendBool(b, keys != nil)
	b = jsonout.String(append(b, `,"open":`...), open)
	b = jsonout.String(append(b, `,"node_id":`...), s.cfg.Node.NodeID())
	b = jsonout.String(append(b, `,"version":`...), s.cfg.Version)
	b = jsonout.String(append(b, `,"page":`...), site.Hash())
	b = strconv.AppendBool(append(b, `,"read_only":`...), s.cfg.Page.ReadOnly)
	b = append(b, `,"me":`...)
	if keys == nil {
		b = s.appendMe(b, &keyring.Caller{Roles: keyring.Operators}, time.Time{})
	} else if k, in, bad := s.visitor(r, keys); bad != nil {
		r.refuse(bad)
		return
	} else if k == nil {
		b = append(b, "null"...)
	} else {
		b = s.appendMe(b, k, in.Expires)
	}
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// visitor returns who has logged in, nil if nobody has. It is refused while the node does
// not know yet.
func (s *Server) visitor(r *request, keys *keyring.Ring) (*keyring.Caller, *login.Login, *refuse.Refusal) {
	text := s.host.pageKey(&r.http.Request.Header)
	if len(text) == 0 {
		return nil, nil, nil
	}
	k, in, why, bad := s.host.who(keys, text, r.start)
	if bad == nil {
		why, bad = k.Bars(r.start, r.source())
	}
	switch {
	case bad == nil:
		return k, in, nil
	case why == keyring.FailUnchecked:
		return nil, nil, bad
	}
	return nil, nil, nil
}

// appendMe appends what a key may do by this node's page.
func (s *Server) appendMe(b []byte, k *keyring.Caller, expires time.Time) []byte {
	roles := k.Roles
	if s.cfg.Page.ReadOnly {
		roles = keyring.Readers
	}
	b = jsonout.String(append(b, `{"name":`...), k.Name)
	b = appendTexts(append(b, `,"roles":`...), roles.Names())
	b = append(b, `,"task_types":`...)
	if len(k.Types) == 0 {
		b = append(b, "null"...)
	} else {
		b = appendTexts(b, k.Types)
	}
	b = append(b, `,"expires_at":`...)
	if expires.IsZero() {
		return append(b, "null}"...)
	}
	return append(jsonout.String(b, expires.UTC().Format(time.RFC3339)), '}')
}
