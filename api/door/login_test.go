package door

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

var (
	secret = []byte(strings.Repeat("s", 32))
	key    = sha256.Sum256([]byte("key"))
	now    = time.Unix(1_780_000_000, 7)
)

// A login is valid only with both halves, the same secret and the same key.
func TestLogin(t *testing.T) {
	t.Parallel()
	l := NewLogin("a.b-c_d", now)
	cookie := l.Cookie(secret, &key)
	if !strings.HasPrefix(cookie, "v1.a.b-c_d.1780000000.1780043200.") || strings.Contains(cookie, l.Number) || len(l.Number) != 22 {
		t.Errorf("cookie %q, number %q", cookie, l.Number)
	}
	if other := NewLogin("a", now); other.Number == l.Number {
		t.Error("two logins have one number")
	}
	read, ok := ReadLogin([]byte(cookie), []byte(l.Number))
	if !ok || read.Name != l.Name || !read.Begun.Equal(l.Begun) || !read.Expires.Equal(l.Expires) || !read.Good(secret, &key) {
		t.Fatalf("read as %+v, %v", read, ok)
	}
	if text := AppendLogin(nil, []byte(cookie), []byte(l.Number)); !IsLogin(text) {
		t.Errorf("%q is no text", text)
	} else if again, ok := ReadLogin(LoginHalves(text)); !ok || !again.Good(secret, &key) || again.Name != l.Name {
		t.Errorf("%q is read as %+v, %v", text, again, ok)
	}
	if renewed, _ := read.Renewed(now.Add(2 * time.Hour)); string(renewed.Secret()) != string(secret) {
		t.Error("it is not renewed with the secret with which it is good")
	}
	other, another := sha256.Sum256([]byte("changed")), []byte(strings.Repeat("t", 32))
	for what, good := range map[string]bool{"another key": read.Good(secret, &other), "another secret": read.Good(another, &key), "no secret": read.Good(nil, &key)} {
		if good {
			t.Errorf("it is good with %s", what)
		}
	}
	if read, ok = ReadLogin([]byte(cookie), []byte(NewLogin("x", now).Number)); ok && read.Good(secret, &key) {
		t.Error("it is good with another number")
	}
}

// Any change of a cookie makes it invalid.
func TestRead_Changed(t *testing.T) {
	t.Parallel()
	l := NewLogin("ops", now)
	cookie := l.Cookie(secret, &key)
	for i := range cookie {
		for _, c := range []byte{'0', '.', 'A', cookie[i] ^ 1} {
			changed := cookie[:i] + string(c) + cookie[i+1:]
			read, ok := ReadLogin([]byte(changed), []byte(l.Number))
			if changed != cookie && ok && read.Good(secret, &key) {
				t.Errorf("%q is good", changed)
			}
		}
	}
	for _, cut := range []string{"", "v1", "v1.", "v1.ops", "v1.ops.1.2", "v1..1.2.AA", "v2" + cookie[2:], cookie + ".", "v1.ops.x.2.AA", "v1.ops.1.x.AA", "v1.ops.1.2.!"} {
		if read, ok := ReadLogin([]byte(cut), []byte(l.Number)); ok && read.Good(secret, &key) {
			t.Errorf("%q is good", cut)
		}
	}
	// Bytes cannot be moved from one field to the next.
	moved := Login{Name: "ops1", Begun: l.Begun, Expires: l.Expires, Number: l.Number, mac: l.sum(secret, &key)}
	if moved.Good(secret, &key) {
		t.Error("another name has the same MAC")
	}
}

// A login in use lasts 24 hours, an unused one 12.
func TestLogin_Renewed(t *testing.T) {
	t.Parallel()
	l := NewLogin("ops", now)
	if l.Expired(now) || l.Expired(l.Begun.Add(LoginLife-time.Second)) || !l.Expired(l.Begun.Add(LoginLife)) {
		t.Errorf("%+v ends at another time", l)
	}
	if _, ok := l.Renewed(now.Add(59 * time.Minute)); ok {
		t.Error("it is renewed at once")
	}
	at := now
	for range 100 {
		at = at.Add(61 * time.Minute)
		if to, ok := l.Renewed(at); ok {
			if to.Number != l.Number || to.Name != l.Name || !to.Begun.Equal(l.Begun) {
				t.Fatalf("renewed it is another one: %+v", to)
			}
			l = to
		}
	}
	if got := l.Expires.Sub(l.Begun); got != 24*time.Hour {
		t.Errorf("it is good for %s", got)
	}
}

// Invalid halves make no text, so that nothing sent by a browser can break a forwarded request.
func TestAppendText(t *testing.T) {
	t.Parallel()
	for _, halves := range [][2]string{{"", "n"}, {"c", ""}, {"a b", "n"}, {"c", "n m"}, {"c\r\nX: y", "n"}, {"c", "\x00"}, {"ü", "n"}, {strings.Repeat("c", 256), "n"}} {
		if text := AppendLogin(nil, []byte(halves[0]), []byte(halves[1])); len(text) > 0 {
			t.Errorf("%q is %q", halves, text)
		}
	}
	if IsLogin([]byte("claimq_key")) {
		t.Error("a key is taken for a login")
	}
	if _, ok := ReadLogin(LoginHalves([]byte(textPrefix + "v1.ops"))); ok {
		t.Error("half a login is one")
	}
}
