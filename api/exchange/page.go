package exchange

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/login"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/web"
)

// Page configures the page that a server serves.
type Page struct {
	// Off disables everything below /ui/.
	Off bool
	// ReadOnly restricts every user of the page to reading.
	ReadOnly bool
}

// tellPage tells the page which version of it this node has and which node answered, if the request came from it.
func (r *Request) tellPage() {
	s := r.Server
	if s.Cfg.Page.Off || len(r.HTTP.Request.Header.Peek(headerPage)) == 0 {
		return
	}
	if site, err := web.Built(); err == nil {
		r.HTTP.Response.Header.Set(headerPage, site.Hash())
	}
	r.HTTP.Response.Header.Set(headerNode, s.Node.NodeID())
}

// Names of the cookie. A browser lets only pages over https set the second one.
const (
	cookieName       = "claimq"
	secureCookieName = "__Host-claimq"
)

// CookiesMax bounds how many cookies of a request are tried as a login, because other ports of the host can set
// cookies of that name, too.
const CookiesMax = 4

// PageKey returns the login that a request of the page has in place of a key, empty if there is none. A browser sends
// the cookie also for a page of another origin, such as another port of this host, but such a page cannot send the
// header. If there are several cookies, the first valid one is used.
func (s *Host) PageKey(h *fasthttp.RequestHeader) []byte {
	number := h.Peek(headerPage)
	if s.Cfg.Page.Off || len(number) == 0 || Foreign(h) {
		return nil // a page in allowed_origins sends a key
	}
	var texts [][]byte
	for _, name := range []string{secureCookieName, cookieName} {
		for key, value := range h.Cookies() {
			if text := login.AppendText(nil, value, number); string(key) == name && len(text) > 0 && len(texts) < CookiesMax {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if keys := s.Keys.Load(); keys != nil && len(texts) > 1 {
		for _, text := range texts {
			if _, _, _, bad := s.Who(keys, text, time.Now()); bad == nil {
				return text
			}
		}
	}
	return texts[0]
}

// Foreign reports whether a page of another origin sent the request.
func Foreign(h *fasthttp.RequestHeader) bool {
	origin := h.Peek(fasthttp.HeaderOrigin)
	return len(origin) > 0 && !sameOrigin(origin, h.Host())
}

// Who returns the key for text, which is a key or a login; for a login it returns that, too.
func (s *Host) Who(keys *keyring.Ring, text []byte, now time.Time) (k *keyring.Caller, in *login.Login, why keyring.Failure, bad *refuse.Refusal) {
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
	secret, err := s.PageSecret()
	switch k = keys.Named(l.Name); {
	case err != nil || secret == nil && (s.Node.Ready() != nil || l.Begun.After(now.Add(-SecretWait))):
		// It does not know the secret yet.
		return nil, nil, keyring.FailUnchecked, refuse.Because(wire.CodeNoLeader)
	case k == nil || !l.Good(secret, &k.Sum):
		return nil, nil, keyring.FailUnknown, ended("The login is over: its key is known no more or has changed, or the cluster was restored")
	case l.Expired(now):
		return nil, nil, keyring.FailExpired, ended("The login has expired")
	}
	return k, &l, 0, nil
}

// PageSecret returns the secret of logins in this node's state, or nil.
func (s *Host) PageSecret() (secret []byte, err error) {
	_, err = s.Node.ReadStale(s.Waits.At(time.Now()), 0, func(m *fsm.Machine, _ fsm.Stamp) { secret = m.PageSecret() })
	return secret, err
}

// fromPage refuses what a request of the page may not do even if its key may: changes without an Origin header, which
// every browser sends, and all changes if the page is read-only.
func (r *Request) fromPage() *refuse.Refusal {
	if r.Forwarded {
		return nil // the node that it reached has checked this
	}
	if r.Server.Cfg.Page.ReadOnly {
		r.roles = keyring.Readers
	}
	h := &r.HTTP.Request.Header
	if r.Target.call.Has(Mutation) && !sameOrigin(h.Peek(fasthttp.HeaderOrigin), h.Host()) {
		return r.Server.Metrics.AuthFailures.Refuse(keyring.FailOrigin, RefuseOrigin("Origin"))
	}
	return nil
}

// readOnlyOpen refuses changes by a read-only page of a server without keys.
func (r *Request) readOnlyOpen() *refuse.Refusal {
	if !r.Server.Cfg.Page.ReadOnly || r.Forwarded || len(r.HTTP.Request.Header.Peek(headerPage)) == 0 || r.Target.call.Roles&keyring.Readers != 0 {
		return nil
	}
	return r.Server.Metrics.AuthFailures.Refuse(keyring.FailRole, keyring.NoRole(keyring.Readers, r.Target.call.String(), r.Target.call.Roles))
}

// renewLogin gives the browser a new cookie if its login should be prolonged.
func (r *Request) renewLogin() {
	to, ok := r.in.Renewed(r.Start)
	if !ok {
		return
	}
	r.SetCookie(to.Cookie(r.in.Secret(), &r.Who.Sum)) // the current secret may be another cluster's
}

// SetCookie sets the login's cookie, for as long as the browser is open; "" removes it.
func (r *Request) SetCookie(value string) {
	var c fasthttp.Cookie
	c.SetKey(cookieName)
	// Behind a proxy that terminates TLS this node sees none, but the browser's Origin tells.
	if r.overTLS() || bytes.HasPrefix(r.HTTP.Request.Header.Peek(fasthttp.HeaderOrigin), []byte("https://")) || len(r.HTTP.Request.Header.Cookie(secureCookieName)) > 0 {
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
	r.HTTP.Response.Header.SetCookie(&c)
}

// overTLS reports whether the request came over TLS.
func (r *Request) overTLS() bool {
	conn, ok := r.HTTP.Conn().(*port.Conn)
	return ok && conn.TLS()
}

const (
	// headerPage is sent by the page with all its calls. The answers tell in it the page's version on this node, so
	// that an older page notices, and in headerNode which node answered.
	headerPage = "X-Claimq-Page"
	headerNode = "X-Claimq-Node"
	// PageAddress is the page's address, relative to the root.
	PageAddress = "ui/"
)

// SecretWait bounds how long after a login at another node this node may not have the secret yet that was made for
// it. Until then its answer should be repeated.
const SecretWait = 10 * time.Second

// ToPage redirects the browser to the address.
func (r *Request) ToPage(address string) {
	r.Label = "redirected"
	r.HTTP.Response.Header.Set(fasthttp.HeaderLocation, address)
	r.HTTP.SetStatusCode(fasthttp.StatusFound)
}
