package api

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/internal/testwait"
)

// API keys never get into the log, wherever in a request they are, even in the wrong place, and whatever is wrong
// with the request.
func TestServer_KeysStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	var log lockedText
	s, _ := setup(t, withKeys(allRoles()...), func(c *Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})
	})
	addr := listen(t, s)
	const known, other = "claimq_secret-of-operator", "claimq_secret-of-somebody-else"
	const host = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	for _, request := range []string{
		"GET /api/stats" + host + "X-API-Key: KEY\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key : KEY\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key KEY\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key KEY: x\r\n\r\n",
		"GET /api/stats" + host + "KEY: x\r\n\r\n",
		"GET /api/stats" + host + "KEY(: x\r\n\r\n",
		"GET /api/stats" + host + " KEY\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key: KEY\x01\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key: \x00KEY\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key: KEY\rX: y\r\n\r\n",
		"GET /api/stats" + host + "X-API-Key:\r\n KEY\r\n\r\n",
		"GET /api/stats" + host + "Authorization: Bearer KEY\x7f\r\n\r\n",
		"GET /api/stats" + host + "Authorization: Basic KEY\r\n\r\n",
		"GET /api/stats" + host + "X-Request-ID: KEY\r\n\r\n",
		"GET /api/stats" + host + "X-Request-ID: x-KEY-x\r\nX-API-Key: KEY\r\n\r\n",
		"GET /api/stats" + host + "Cookie: KEY\r\nOrigin: http://KEY\r\nSec-Fetch-Site: KEY\r\n\r\n",
		"GET /api/stats" + host + "X-Claimq-Min-Index: KEY\r\nX-API-Key: KEY\r\n\r\n",
		"GET /api/stats?key=KEY" + host + "\r\n",
		"GET /api/tasks/KEY" + host + "\r\n",
		"GET /KEY" + host + "X-API-Key: KEY\r\n\r\n",
		"GET http://KEY@localhost/api/stats" + host + "\r\n",
		"GET http://[KEY/api/stats" + host + "\r\n",
		"GET /api/stats?\x01KEY" + host + "\r\n",
		"GET /api/stats KEY\r\nHost: localhost\r\n\r\n",
		"GET /api/stats HTTP/KEY\r\nHost: localhost\r\n\r\n",
		"GET KEY\r\n\r\n",
		"KEY\r\n\r\n",
		"KEY /api/stats" + host + "\r\n",
		"KE\x02KEY /api/stats" + host + "\r\n",
		"GET /api/stats HTTP/1.1\r\nHost: KEY:KEY\r\nConnection: close\r\n\r\n",
		"GET /api/stats HTTP/1.1\r\nHost: a\r\nHost: KEY\r\n\r\n",
		"POST /api/tasks" + host + "Content-Length: KEY\r\n\r\n",
		"POST /api/tasks" + host + "Transfer-Encoding: KEY\r\n\r\n",
		"POST /api/tasks" + host + "Transfer-Encoding: chunked\r\n\r\nKEY\r\n",
		"POST /api/tasks" + host + "Transfer-Encoding: chunked\r\nTrailer: KEY\r\n\r\n1\r\nx\r\n0\r\nKEY: x\x01\r\n\r\n",
		"POST /api/tasks" + host + "X-API-Key: KEY\r\nExpect: KEY\r\nContent-Length: 3\r\n\r\n{}",
		"POST /api/tasks" + host + "X-API-Key: KEY\r\nContent-Length: 33\r\n\r\n{\"KEY\": \"KEY",
		"POST /api/tasks/claim" + host + "X-API-Key: KEY\r\nContent-Type: KEY\r\nContent-Encoding: KEY\r\nContent-Length: 2\r\n\r\n[]",
		"GET /api/stats" + host + "X: " + strings.Repeat("KEY", headerBytes),
		"\x16\x03\x01\x02\x00KEY",
	} {
		for _, key := range []string{known, other} {
			sent := strings.ReplaceAll(request, "KEY", key)
			before := len(log.String())
			talk(t, addr, sent)
			if text := log.String()[before:]; strings.Contains(text, key[len(door.KeyPrefix):]) {
				t.Errorf("%q is logged:\n%s", sent, text)
			}
		}
	}
}

// talk sends bytes over a new connection and returns when the server has closed it or waits for more.
func talk(t *testing.T, addr, sent string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testwait.Patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, sent) // it may be closed meanwhile
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn)
}
