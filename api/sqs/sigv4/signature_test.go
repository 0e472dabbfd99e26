package sigv4

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	testSecret = "wJalrXUtnFEMI+bPxRfiCYEXAMPLEKEY"
	// testSum was made by another implementation: Python's hmac, by the description of the algorithm.
	testSum = "ef7ea4ceb1613018da65fe5ef983c8b17303bbe87f23d88354eb9c2983eed8f5"
	// testURLSum is the signature of a URL, made the same way.
	testURLSum = "355495ad221bc5fa3e17b3fc49426ad08b5c9a27cf3c619e341f06fa7aebb749"
)

var testNow = time.Date(2026, 11, 28, 17, 13, 33, 0, time.UTC)

// testHeaders are the headers of testRequest.
func testHeaders() map[string][]string {
	return map[string][]string{
		"host": {"127.0.0.1:7400"}, "x-amz-date": {"20261128T171333Z"}, "x-amz-target": {"AmazonSQS.ListQueues"}, "content-type": {"  a   b "},
		"authorization": {"AWS4-HMAC-SHA256 Credential=AKID/20261128/eu-west-1/sqs/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + testSum},
	}
}

func testRequest(headers map[string][]string) *Request {
	return &Request{Method: "POST", Path: "/", Query: "b=2&a=%20x", Sum: sha256.Sum256([]byte("{}")), Header: func(name string) (values [][]byte) {
		for _, v := range headers[name] {
			values = append(values, []byte(v))
		}
		return values
	}}
}

func verify(r *Request, secret string, now time.Time) error {
	s, err := Read(r)
	if err != nil {
		return err
	}
	return s.Verify(r, secret, now, new(Keys))
}

// kindOf tells the errors of the package apart.
func kindOf(err error) string {
	var incomplete *IncompleteError
	var wrong *WrongError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrNone):
		return "none"
	case errors.As(err, &incomplete):
		return "incomplete"
	case errors.As(err, &wrong):
		return "wrong"
	}
	return "another"
}

func TestSignature(t *testing.T) {
	t.Parallel()
	if err := verify(testRequest(testHeaders()), testSecret, testNow); err != nil {
		t.Fatal(err)
	}
	if id := AccessKeyID(testHeaders()["authorization"][0]); id != "AKID" {
		t.Error(id)
	}
	for _, x := range []struct {
		name   string
		change func(r *Request, headers map[string][]string)
		secret string
		after  time.Duration
		kind   string
	}{
		{"another secret", nil, "x" + testSecret, 0, "wrong"},
		{"another body", func(r *Request, _ map[string][]string) { r.Sum = sha256.Sum256([]byte("{ }")) }, "", 0, "wrong"},
		{"another path", func(r *Request, _ map[string][]string) { r.Path = "/1/q" }, "", 0, "wrong"},
		{"another query", func(r *Request, _ map[string][]string) { r.Query += "&c" }, "", 0, "wrong"},
		{"another method", func(r *Request, _ map[string][]string) { r.Method = "GET" }, "", 0, "wrong"},
		{"another target", func(_ *Request, h map[string][]string) { h["x-amz-target"] = []string{"AmazonSQS.PurgeQueue"} }, "", 0, "wrong"},
		{"a sum of a body that a header names", func(r *Request, h map[string][]string) {
			r.Sum, h["x-amz-content-sha256"] = sha256.Sum256([]byte("x")), []string{"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}
		}, "", 0, "wrong"},
		{"late", nil, "", SkewMax + time.Second, "wrong"},
		{"as late as may be", nil, "", SkewMax, ""},
		{"early", nil, "", -SkewMax - time.Second, "wrong"},
		{"none", func(_ *Request, h map[string][]string) { delete(h, "authorization") }, "", 0, "none"},
		{"another algorithm", func(_ *Request, h map[string][]string) { h["authorization"] = []string{"Bearer x"} }, "", 0, "incomplete"},
		{"no date", func(_ *Request, h map[string][]string) { delete(h, "x-amz-date") }, "", 0, "incomplete"},
		{"another day than its scope", func(_ *Request, h map[string][]string) { h["x-amz-date"] = []string{"20261129T171333Z"} }, "", 0, "incomplete"},
		{"without host", func(_ *Request, h map[string][]string) {
			h["authorization"][0] = strings.Replace(h["authorization"][0], "host;", "", 1)
		}, "", 0, "incomplete"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			headers := testHeaders()
			r := testRequest(headers)
			if x.change != nil {
				x.change(r, headers)
			}
			secret := testSecret
			if x.secret != "" {
				secret = x.secret
			}
			if err := verify(r, secret, testNow.Add(x.after)); kindOf(err) != x.kind {
				t.Errorf("%v, want %q", err, x.kind)
			}
		})
	}
}

// A URL that was signed is good for as long as it says.
func TestSignature_presigned(t *testing.T) {
	t.Parallel()
	query := "Action=PurgeQueue&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20261128%2Feu-west-1%2Fsqs%2Faws4_request&X-Amz-Date=20261128T171333Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host"
	r := &Request{Method: "GET", Path: "/000000000000/q", Sum: sha256.Sum256(nil), Query: query + "&X-Amz-Signature=" + testURLSum, Header: func(name string) [][]byte {
		if name == "host" {
			return [][]byte{[]byte("127.0.0.1:7400")}
		}
		return nil
	}}
	if err := verify(r, testSecret, testNow.Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if err := verify(r, testSecret, testNow.Add(61*time.Second)); kindOf(err) != "wrong" {
		t.Error(err)
	}
	r.Query = strings.Replace(r.Query, "Expires=60", "Expires=61", 1)
	if err := verify(r, testSecret, testNow); kindOf(err) != "wrong" {
		t.Error(err)
	}
	r.Query = strings.Replace(r.Query, "Expires=61", "Expires=604801", 1)
	if err := verify(r, testSecret, testNow); kindOf(err) != "incomplete" {
		t.Error(err)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add(testHeaders()["authorization"][0], "20261128T171333Z", "a=b")
	f.Fuzz(func(t *testing.T, authorization, date, query string) {
		headers := testHeaders()
		headers["authorization"], headers["x-amz-date"] = []string{authorization}, []string{date}
		r := testRequest(headers)
		r.Query = query
		if err := verify(r, "another secret than any", testNow); kindOf(err) == "" {
			t.Errorf("%v", err)
		}
	})
}

// A key is kept once a signature by it was right, and there are never more than the bound.
func TestKeys(t *testing.T) {
	t.Parallel()
	keys := new(Keys)
	check := func(secret string, change func(r *Request)) error {
		r := testRequest(testHeaders())
		change(r)
		s, err := Read(r)
		if err != nil {
			t.Fatal(err)
		}
		return s.Verify(r, secret, testNow, keys)
	}
	same, other := func(*Request) {}, func(r *Request) { r.Sum = sha256.Sum256([]byte("other")) }
	if err := check("x"+testSecret, same); err == nil || len(keys.of) != 0 {
		t.Errorf("%v, and %d keys are kept", err, len(keys.of))
	}
	for range 2 {
		if err := check(testSecret, same); err != nil || len(keys.of) != 1 {
			t.Errorf("%v, and %d keys are kept", err, len(keys.of))
		}
		if err := check(testSecret, other); err == nil {
			t.Error("a kept key takes another body")
		}
	}
	for i := range 2 * keysMax {
		keys.keep(strconv.Itoa(i), nil)
	}
	if len(keys.of) > keysMax {
		t.Errorf("%d keys are kept", len(keys.of))
	}
}
