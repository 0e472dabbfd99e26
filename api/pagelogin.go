package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
	"github.com/claimq/claimq/web"
)

// wrongKeyWait is the time after which a wrong key is answered, so that the time of the check reveals nothing.
const wrongKeyWait = 200 * time.Millisecond

// ofPage refuses a call about a login, and returns false, if there is no page or the request comes from another
// origin. allowed_origins permits other origins to call the API, but not to log in or out.
func (s *Server) ofPage(r *request) (ok bool) {
	switch {
	case s.cfg.Page.Off:
		r.refuse(refuse.Because(wire.CodeNotFound))
	case foreign(&r.http.Request.Header):
		r.refuse(s.core.metrics.AuthFailures.Refuse(door.FailOrigin, refuseOrigin("Origin")))
	default:
		return true
	}
	return false
}

// login answers POST /ui/login. For the very first login the leader creates the secret.
func (s *Server) login(r *request) {
	if r.hop.forwarded { // by a node without the secret; the key is not included
		s.makeSecret(r)
		return
	}
	if !s.ofPage(r) {
		return
	}
	keys := s.core.keys.Load()
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
		if retry, ok := s.tries.Try(r.source(), int64(r.timing.start.Sub(s.core.begun))); !ok {
			r.refuse(refuse.New(wire.CodeRateLimited, "There were "+strconv.Itoa(door.TriesPerMinute)+" wrong keys within a minute from this address, and this is another one",
				"Repeat the login with a key that this server knows"))
			r.http.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(door.Seconds(int64(retry)), 10))
			return
		}
	}
	if bad != nil {
		r.who.barred = k
		s.waitWrong(r)
		r.refuse(s.core.metrics.AuthFailures.Refuse(why, bad))
		return
	}
	secret, ok := s.secretOf(r)
	if !ok {
		return
	}
	in := door.NewLogin(k.Name, r.timing.start)
	k.Used(r.timing.start, r.source())
	r.setCookie(in.Cookie(secret, &k.Sum))
	b := append(r.buffer(), `{"success":true,"n":`...)
	b = jsonout.String(b, in.Number)
	b = s.appendMe(append(b, `,"me":`...), k, in.Expires)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// decodeLogin decodes the key from a login's body.
func decodeLogin(r *request) (key []byte, bad *refuse.Refusal) {
	d := r.decoder()
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
func keyOfLogin(keys *door.Keyring, text []byte, r *request) (k *door.Caller, why door.Failure, bad *refuse.Refusal) {
	if k = keys.FindText(text); k == nil {
		bad = door.Unauthorized("Unknown API key")
		bad.Advice = "Log in with an API key that this server knows; the page takes no tokens"
		return nil, door.FailUnknown, bad
	}
	why, bad = k.Bars(r.timing.start, r.source())
	return k, why, bad
}

// waitWrong waits until a wrong key may be answered, or the server drains.
func (s *Server) waitWrong(r *request) {
	wait, cancel := context.WithDeadline(s.core.serving, r.timing.start.Add(wrongKeyWait))
	defer cancel()
	<-wait.Done()
}

// secretOf returns the secret of logins; the leader creates the first one. ok is false if the request was already
// answered.
func (s *Server) secretOf(r *request) (secret []byte, ok bool) {
	secret, err := s.core.pageSecret()
	if err != nil {
		r.refuseCode(err)
		return nil, false
	}
	if secret != nil {
		return secret, true
	}
	r.http.Request.ResetBody() // do not forward the key
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

// there reports whether the secret exists, and refuses the request if a restore has removed it.
func (s *Server) there(r *request, secret []byte) bool {
	if secret == nil {
		r.refuse(refuse.Because(wire.CodeOverloaded))
	}
	return secret != nil
}

// makeSecret creates a secret of logins in the state, and answers with its index. A follower leaves it to the leader.
func (s *Server) makeSecret(r *request) {
	var random [command.PageSecretBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	p, err := s.cfg.Node.Propose(r.ctx(), command.SetPageSecret{Secret: random[:]})
	switch {
	case errors.Is(err, nodes.ErrNotLeader):
		r.forwardOrRedirect()
	case err != nil:
		r.refuseCode(err)
	default:
		r.setIndex(p.Index)
		r.send(fasthttp.StatusOK, append(r.buffer(), `{"success":true}`...))
	}
}

// logout answers POST /ui/logout: the browser drops its cookie.
func (s *Server) logout(r *request) {
	if !s.ofPage(r) {
		return
	}
	r.setCookie("")
	r.send(fasthttp.StatusOK, append(r.buffer(), `{"success":true}`...))
}

// session answers GET /ui/session with what the page must know before its first call.
func (s *Server) session(r *request) {
	if !s.ofPage(r) {
		return
	}
	site, ok := s.site(r)
	if !ok {
		return
	}
	keys, open := s.core.keys.Load(), ""
	if keys == nil {
		if open = "loopback"; s.cfg.Insecure {
			open = "insecure"
		}
	}
	b := append(r.buffer(), `{"success":true,"login":`...)
	b = strconv.AppendBool(b, keys != nil)
	b = jsonout.StringField(b, `,"open":`, open)
	b = jsonout.StringField(b, `,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.StringField(b, `,"version":`, s.cfg.Version)
	b = jsonout.StringField(b, `,"page":`, site.Hash())
	b = jsonout.BoolField(b, `,"read_only":`, s.cfg.Page.ReadOnly)
	b = append(b, `,"me":`...)
	if keys == nil {
		b = s.appendMe(b, &door.Caller{Roles: door.Operators}, time.Time{})
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

// visitor returns the key that is logged in, or nil. The request is refused while this node cannot know yet.
func (s *Server) visitor(r *request, keys *door.Keyring) (*door.Caller, *door.Login, *refuse.Refusal) {
	text := s.core.pageKey(&r.http.Request.Header, false)
	if len(text) == 0 {
		return nil, nil, nil
	}
	k, in, why, bad := s.core.who(keys, text, r.timing.start)
	if bad == nil {
		why, bad = k.Bars(r.timing.start, r.source())
	}
	switch {
	case bad == nil:
		return k, in, nil
	case why == door.FailUnchecked:
		return nil, nil, bad
	}
	return nil, nil, nil
}

// appendMe appends what a key may do on this node's page.
func (s *Server) appendMe(b []byte, k *door.Caller, expires time.Time) []byte {
	roles := k.Roles
	if s.cfg.Page.ReadOnly {
		roles = door.Readers
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

// tellPage tells the page which version of it this node has and which node answered, if the request came from it.
func (r *request) tellPage() {
	s := r.core
	if s.cfg.Page.Off || len(r.header(headerPage)) == 0 {
		return
	}
	if site, err := web.Built(); err == nil {
		r.http.Response.Header.Set(headerPage, site.Hash())
	}
	r.http.Response.Header.Set(headerNode, s.node.NodeID())
}

// Names of the cookie. A browser lets only pages over https set the second one.
const (
	cookieName       = "claimq"
	secureCookieName = "__Host-claimq"
)

// cookiesMax bounds how many cookies of a request are tried as a login, because other ports of the host can set
// cookies of that name, too.
const cookiesMax = 4

// pageKey returns the login that a request of the page has in place of a key, empty without a login. A browser sends
// the cookie also for a page of another origin, such as another port of this host, but such a page cannot send the
// header. If there are several cookies, the first valid one is used.
func (s *core) pageKey(h *fasthttp.RequestHeader, forwarded bool) []byte {
	number := h.Peek(headerPage)
	if s.cfg.Page.Off && !forwarded || len(number) == 0 || foreign(h) {
		return nil // a page in allowed_origins sends a key
	}
	var texts [][]byte
	for _, name := range []string{secureCookieName, cookieName} {
		for key, value := range h.Cookies() {
			if text := door.AppendLogin(nil, value, number); string(key) == name && len(text) > 0 && len(texts) < cookiesMax {
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

// foreign reports whether a page of another origin sent the request.
func foreign(h *fasthttp.RequestHeader) bool {
	origin := h.Peek(fasthttp.HeaderOrigin)
	return len(origin) > 0 && !sameOrigin(origin, h.Host())
}

// who returns the key for text, which is a key or a login; for a login it returns that, too.
func (s *core) who(keys *door.Keyring, text []byte, now time.Time) (k *door.Caller, in *door.Login, why door.Failure, bad *refuse.Refusal) {
	if !door.IsLogin(text) {
		k, why, bad = keys.Who(text, now)
		return k, nil, why, bad
	}
	ended := func(text string) *refuse.Refusal {
		return &refuse.Refusal{Code: wire.CodeUnauthorized, Text: text, Advice: "Log in at the page with a key that this server knows"}
	}
	l, ok := door.ReadLogin(door.LoginHalves(text))
	if !ok {
		return nil, nil, door.FailMalformed, ended("The login is malformed")
	}
	secret, err := s.pageSecret()
	switch k = keys.Named(l.Name); {
	case err != nil || secret == nil && (s.node.Ready() != nil || l.Begun.After(now.Add(-secretWait))):
		// It does not know the secret yet.
		return nil, nil, door.FailUnchecked, refuse.Because(wire.CodeNoLeader)
	case k == nil || !l.Good(secret, &k.Sum):
		return nil, nil, door.FailUnknown, ended("The login is over: its key is known no more or has changed, or the cluster was restored")
	case l.Expired(now):
		return nil, nil, door.FailExpired, ended("The login has expired")
	}
	return k, &l, 0, nil
}

// pageSecret returns the secret of logins in this node's state, or nil.
func (s *core) pageSecret() (secret []byte, err error) {
	_, err = s.node.ReadStale(s.waits.at(time.Now()), 0, func(m *fsm.Machine, _ fsm.Stamp) { secret = m.PageSecret() })
	return secret, err
}

// fromPage refuses what a request of the page may not do even if its key may: changes without an Origin header, which
// every browser sends, and all changes if the page is read-only.
func (r *request) fromPage() *refuse.Refusal {
	if r.hop.forwarded {
		return nil // the node that it reached has checked this
	}
	if r.core.cfg.Page.ReadOnly {
		r.who.roles = door.Readers
	}
	h := &r.http.Request.Header
	if r.target.call.has(mutation) && !sameOrigin(h.Peek(fasthttp.HeaderOrigin), h.Host()) {
		return r.core.metrics.AuthFailures.Refuse(door.FailOrigin, refuseOrigin("Origin"))
	}
	return nil
}

// readOnlyOpen refuses changes by a read-only page of a server without keys.
func (r *request) readOnlyOpen() *refuse.Refusal {
	if !r.core.cfg.Page.ReadOnly || r.hop.forwarded || len(r.header(headerPage)) == 0 || r.target.call.roles&door.Readers != 0 {
		return nil
	}
	return r.core.metrics.AuthFailures.Refuse(door.FailRole, door.NoRole(door.Readers, r.target.call.String(), r.target.call.roles))
}

// renewLogin gives the browser a new cookie if its login should be prolonged.
func (r *request) renewLogin() {
	to, ok := r.who.login.Renewed(r.timing.start)
	if !ok {
		return
	}
	r.setCookie(to.Cookie(r.who.login.Secret(), &r.who.key.Sum)) // the current secret may be another cluster's
}

// setCookie sets the login's cookie, for as long as the browser is open; "" removes it.
func (r *request) setCookie(value string) {
	var c fasthttp.Cookie
	c.SetKey(cookieName)
	// Behind a proxy that terminates TLS this node sees none, but the browser's Origin tells.
	if r.overTLS() || bytes.HasPrefix(r.header(fasthttp.HeaderOrigin), []byte("https://")) || len(r.http.Request.Header.Cookie(secureCookieName)) > 0 {
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
	conn, ok := r.http.Conn().(*door.Conn)
	return ok && conn.TLS()
}

const (
	// headerPage is sent by the page with all its calls. The answers tell in it the page's version on this node, so
	// that an older page notices, and in headerNode which node answered.
	headerPage = "X-Claimq-Page"
	headerNode = "X-Claimq-Node"
	// pageAddress is the page's address, relative to the root.
	pageAddress = "ui/"
)

// secretWait bounds how long after a login at another node this node may not have the secret yet that was made for
// it. Until then its answer should be repeated.
const secretWait = 10 * time.Second

// toPage redirects the browser to the address.
func (r *request) toPage(address string) {
	r.outcome.label = "redirected"
	r.http.Response.Header.Set(fasthttp.HeaderLocation, address)
	r.http.SetStatusCode(fasthttp.StatusFound)
}
