package errorgroup

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// People keep ids of groups, and the log has them: none of these may ever change.
func TestSignature_NeverChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ err, want string }{
		{"", ""},
		{" \n\t", ""},
		{"timeout", "timeout"},
		{"  timeout  \nstack: 1\nmore", "timeout"},
		{"\n\n  first line\r\nsecond", "first line"},
		{"timeout after 3000 ms", "timeout after <n> ms"},
		{"took 1.5s, 12,000 rows", "took <n>s, <n> rows"},
		{"dial tcp 10.0.0.12:5432: connect: connection refused", "dial tcp <n>: connect: connection refused"},
		{"at 2026-11-25T19:04:05.123Z", "at <n>T<n>Z"},
		{"worker12 of utf8", "worker<n> of utf<n>"},
		{"step 3- failed", "step <n>- failed"},
		{`user "ann@example.org" is unknown`, "user <text> is unknown"},
		{`key "a\"b" is taken`, "key <text> is taken"},
		{"no such column: `a\\`", "no such column: <text>"},
		{"can't open 'a b', don't retry", "can't open <text>, don't retry"},
		{"it's o'clock", "it's o'clock"},
		{`an open " mark`, `an open " mark`},
		{"order 123e4567-e89b-12d3-a456-426614174000 is gone", "order <uuid> is gone"},
		{"order 123e4567-e89b-12d3-a456-4266141740001", "order <hex>-e<n>b-<n>d<n>-a<n>"},
		{"panic at 0x7ffde4c0", "panic at <hex>"},
		{"commit 9f2c1ab7 and deadbeef", "commit <hex> and deadbeef"},
		{"object 65a1f0c9e1b2d3f4a5b6c7d8", "object <hex>"},
		{"12345678 rows", "<n> rows"},
		{"größe 7 überschritten", "größe <n> überschritten"},
		{strings.Repeat("ü", 200), strings.Repeat("ü", 100)},
		{"a" + strings.Repeat("ü", 200), "a" + strings.Repeat("ü", 99)},
		{strings.Repeat("9", 2000), "<n>"},
		{strings.Repeat("9", 1023) + "ü", "<n>"},
		{strings.Repeat("7 ", 100), strings.Repeat("<n> ", 50)},
	} {
		if got := Signature(c.err); got != c.want {
			t.Errorf("%q: got %q, want %q", c.err, got, c.want)
		}
	}
}

func FuzzSignature(f *testing.F) {
	f.Add("dial tcp 10.0.0.12:5432: 'a' \"b\" 0xff 123e4567-e89b-12d3-a456-426614174000\nmore")
	f.Add("\xff\"\\")
	f.Fuzz(func(t *testing.T, err string) {
		s := Signature(err)
		switch {
		case len(s) > SignatureMax:
			t.Errorf("%q: the signature has %d bytes", err, len(s))
		case strings.ContainsAny(s, "\n\r"):
			t.Errorf("%q: the signature %q has more than a line", err, s)
		case utf8.ValidString(err) && !utf8.ValidString(s):
			t.Errorf("%q: the signature %q is no UTF-8", err, s)
		case Of("a", err) != Of([]byte("a"), []byte(err)):
			t.Errorf("%q: a part of a record is in another group", err)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	failure := []byte("deliver to \"u17@example.org\": error of kind b: timeout after 3000 ms\nat mail.go:12")
	for b.Loop() {
		Of([]byte("mail"), failure)
	}
}
