package sqs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/claimq/claimq/api/sqs/sigv4"
)

// toSign is a request whose signature depends on a rule of the algorithm.
type toSign struct {
	Name, Method, Target string
	Header               http.Header
	Body                 string
}

var toSignAll = []toSign{
	{Name: "nothing but the host", Method: "GET", Target: "/"},
	{Name: "a queue", Method: "POST", Target: "/000000000000/mail_1-a.fifo"},
	{Name: "parameters out of order", Method: "GET", Target: "/?b=2&a=1&B=3&A=0"},
	{Name: "values out of order", Method: "GET", Target: "/?a=2&a=1&a=&a=10"},
	{Name: "without a value", Method: "GET", Target: "/?a&b=&c"},
	{Name: "what needs no escape", Method: "GET", Target: "/?-._~0aZ=-._~0aZ"},
	{Name: "escapes", Method: "GET", Target: "/?a%20b=c%2Bd&e%3D=%26%2F%3F&plus=%2B&star=%2A"},
	{Name: "UTF-8", Method: "GET", Target: "/?%E1%88%B4=%E2%82%AC"},
	{Name: "a form", Method: "POST", Target: "/", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}, Body: "Action=ListQueues&Version=2012-11-05"},
	{Name: "JSON", Method: "POST", Target: "/", Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS.ListQueues"}}, Body: "{}"},
	{Name: "a large body", Method: "POST", Target: "/", Header: http.Header{"X-Amz-Target": {"AmazonSQS.SendMessage"}}, Body: strings.Repeat("€", 100_000)},
	{Name: "a header with spaces", Method: "POST", Target: "/", Header: http.Header{"X-Amz-Meta": {"  a   b  c "}}},
	{Name: "a header twice", Method: "POST", Target: "/", Header: http.Header{"X-Amz-Meta": {"z", "a", "m"}}},
	{Name: "headers out of order", Method: "POST", Target: "/", Header: http.Header{"X-Amz-Zz": {"1"}, "X-Amz-A": {"2"}, "X-Amz-Mm": {"3"}}},
	{Name: "the token of a session", Method: "POST", Target: "/", Header: http.Header{"X-Amz-Security-Token": {"a+b/c=="}}, Body: "x"},
}

// received is a signed request as the node gets it.
func received(method, target, host, body string, header http.Header) *sigv4.Request {
	path, query, _ := strings.Cut(target, "?")
	return &sigv4.Request{Method: method, Path: path, Query: query, Sum: sha256.Sum256([]byte(body)), Header: func(name string) (values [][]byte) {
		all := header.Values(name)
		switch name {
		case "host":
			all = []string{host}
		case "content-length":
			all = []string{fmt.Sprint(len(body))}
		}
		for _, v := range all {
			values = append(values, []byte(v))
		}
		return values
	}}
}

func checked(r *sigv4.Request, now time.Time) error {
	s, err := sigv4.Read(r)
	if err != nil {
		return err
	}
	return s.Verify(r, secret, now, new(sigv4.Keys))
}

// checkBoth checks that a signature is good, but not for another request.
func checkBoth(t *testing.T, r *sigv4.Request, now time.Time) {
	t.Helper()
	if err := checked(r, now); err != nil {
		t.Error(err)
	}
	r.Sum[0]++
	if wrong := (*sigv4.WrongError)(nil); !errors.As(checked(r, now), &wrong) {
		t.Error("it is good for another body")
	}
}

const signedHost = "127.0.0.1:7400"

// What the SDK for Go signs is good, in headers and in a URL.
func TestSignatures_go(t *testing.T) {
	now := time.Now()
	for _, c := range toSignAll {
		sum := sha256.Sum256([]byte(c.Body))
		request := func(t *testing.T, target string) *http.Request {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), c.Method, "http://"+signedHost+target, strings.NewReader(c.Body))
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range c.Header {
				req.Header[name] = values
			}
			return req
		}
		t.Run(c.Name, func(t *testing.T) {
			req := request(t, c.Target)
			if err := v4.NewSigner().SignHTTP(t.Context(), Credential, req, hex.EncodeToString(sum[:]), "sqs", "eu-west-1", now); err != nil {
				t.Fatal(err)
			}
			checkBoth(t, received(c.Method, c.Target, signedHost, c.Body, req.Header), now)
		})
		t.Run(c.Name+", as a URL", func(t *testing.T) {
			separator := "?"
			if strings.Contains(c.Target, "?") {
				separator = "&"
			}
			req := request(t, c.Target+separator+"X-Amz-Expires=60")
			uri, header, err := v4.NewSigner().PresignHTTP(t.Context(), Credential, req, hex.EncodeToString(sum[:]), "sqs", "eu-west-1", now)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(uri)
			if err != nil {
				t.Fatal(err)
			}
			r := received(c.Method, u.RequestURI(), signedHost, c.Body, header)
			checkBoth(t, r, now)
			r.Sum = sum
			if wrong := (*sigv4.WrongError)(nil); !errors.As(checked(r, now.Add(61*time.Second)), &wrong) {
				t.Error("it is good after its time")
			}
		})
	}
}

// What botocore signs is good.
func TestSignatures_botocore(t *testing.T) {
	cases, err := json.Marshal(toSignAll)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/sign.py", signedHost, accessID, secret)
	cmd.Stdin = bytes.NewReader(cases)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var signed []struct {
		Case         int
		Name, Target string
		Header       map[string]string
	}
	if err := json.Unmarshal(out, &signed); err != nil || len(signed) <= len(toSignAll) {
		t.Fatalf("%v: %s", err, out)
	}
	for _, s := range signed {
		t.Run(s.Name, func(t *testing.T) {
			c := toSignAll[s.Case]
			header := http.Header{}
			for name, value := range s.Header {
				header.Set(name, value)
			}
			checkBoth(t, received(c.Method, s.Target, signedHost, c.Body, header), time.Now())
		})
	}
}
