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

// Page says what of the page a server serves.
type Page struct {
	// Off: there is nothing below /ui/.
	Off bool
	// ReadOnly: whoever comes by the page may read alone.
	ReadOnly bool
}

// tellPage tells the page, if the request is of it, which page this node has and which node
// this is.
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

// The names of the cookie: a browser lets nobody set the second but a page of https.
const (
	cookieName       = "claimq"
	secureCookieName = "__Host-claimq"
)

// CookiesMax bounds the cookies of a request that are taken for a login's: other ports of
// the host can set some of that name, too.
const CookiesMax = 4

// PageKey returns what stands for the key of a request of the page, empty if it has not
// logged in. A page of another origin, be it at another port of this host, is sent the cookie
// along with, but cannot send the header. Of several cookies the first that is good counts.
func (s *Host) PageKey(h *fasthttp.RequestHeader) []byte {
	number := h.Peek(headerPage)
	if s.Cfg.Page.Off || len(number) == 0 || Foreign(h) {
		return nil // a page that allowed_origins has sends a key
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

// Foreign reports whether a request says that a page of another origin sends it.
func Foreign(h *fasthttp.RequestHeader) bool {
	origin := h.Peek(fasthttp.HeaderOrigin)
	return len(origin) > 0 && !sameOrigin(origin, h.Host())
}

// Who returns the key that a text is or stands for; of what stands for one the login, too.
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
		// It does not know yet what it will.
		return nil, nil, keyring.FailUnchecked, refuse.Because(wire.CodeNoLeader)
	case k == nil || !l.Good(secret, &k.Sum):
		return nil, nil, keyring.FailUnknown, ended("The login is over: its key is known no more or has changed, or the cluster was restored")
	case l.Expired(now):
		return nil, nil, keyring.FailExpired, ended("The login has expired")
	}
	return k, &l, 0, nil
}

// PageSecret returns the secret of logins that this node's state has, nil if it has none.
func (s *Host) PageSecret() (secret []byte, err error) {
	_, err = s.Node.ReadStale(s.Waits.At(time.Now()), 0, func(m *fsm.Machine, _ fsm.Stamp) { secret = m.PageSecret() })
	return secret, err
}

// fromPage refuses what a request of the page may not do beside what its key may not: to
// act without telling its origin, which every browser does, and to act at all where the
// page may read alone.
func (r *Request) fromPage() *refuse.Refusal {
	if r.Forwarded {
		return nil // the node that it reached has looked
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

// readOnlyOpen refuses a request of the page of a server without keys that may read alone.
func (r *Request) readOnlyOpen() *refuse.Refusal {
	if !r.Server.Cfg.Page.ReadOnly || r.Forwarded || len(r.HTTP.Request.Header.Peek(headerPage)) == 0 || r.Target.call.Roles&keyring.Readers != 0 {
		return nil
	}
	return r.Server.Metrics.AuthFailures.Refuse(keyring.FailRole, keyring.NoRole(keyring.Readers, r.Target.call.String(), r.Target.call.Roles))
}

// renewLogin gives the browser another cookie if its login is to go on.
func (r *Request) renewLogin() {
	to, ok := r.in.Renewed(r.Start)
	if !ok {
		return
	}
	r.SetCookie(to.Cookie(r.in.Secret(), &r.Who.Sum)) // the secret of now may be another cluster's
}

// SetCookie sets the login's cookie, for as long as the browser is open; "" takes it away.
func (r *Request) SetCookie(value string) {
	var c fasthttp.Cookie
	c.SetKey(cookieName)
	// Behind a proxy that speaks TLS the node sees none; the browser says what it sees.
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
	// headerPage is sent by the page with all its calls. Answers to these say in it which
	// page this node has, so that an older one notices, and in headerNode who answered.
	headerPage = "X-Claimq-Page"
	headerNode = "X-Claimq-Node"
	// PageAddress is where the page is, from the root.
	PageAddress = "ui/"
)

// SecretWait is how long after a login a node may not have the secret yet that was made for
// it at another one. Its answer is to be repeated then.
const SecretWait = 10 * time.Second

// ToPage sends the browser to the address.
func (r *Request) ToPage(address string) {
	r.Label = "redirected"
	r.HTTP.Response.Header.Set(fasthttp.HeaderLocation, address)
	r.HTTP.SetStatusCode(fasthttp.StatusFound)
}
