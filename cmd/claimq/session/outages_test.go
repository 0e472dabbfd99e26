package session

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// Users hear within 5 s that no node answers, and as soon as one answers. They hear the same of a later outage, once a
// call is repeated.
func TestOutages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		down  func(context.Context) (net.Conn, error)
		later time.Duration // until they hear of a later outage
	}{
		"nothing listens": {func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") }, 5 * time.Second},
		"silence":         {func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { goesDownTwice(t, c.down, c.later) })
		})
	}
}

func goesDownTwice(t *testing.T, down func(context.Context) (net.Conn, error), later time.Duration) {
	s := clienttest.New(t)
	var isUp atomic.Bool
	o := NewOutages()
	c, err := client.New(client.Config{Endpoints: []string{"http://clienttest"}, Logger: slog.New(o), Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if !isUp.Load() {
			return down(ctx)
		}
		conn, err := s.Dial(ctx, network, address)
		return &mortal{conn, &isUp}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	said := make(chan string, 100)
	defer o.Watch(t.Context(), c, func(text string) { said <- text })()
	for _, most := range []time.Duration{5 * time.Second, later} {
		began := time.Now()
		got := <-said
		if took := time.Since(began); !strings.HasPrefix(got, "the cluster does not answer") || took > most {
			t.Fatalf("after %v it says %q", took, got)
		}
		<-time.After(time.Hour)
		isUp.Store(true)
		began = time.Now()
		got = <-said
		if took := time.Since(began); got != "the cluster answers" || took > silenceMax {
			t.Fatalf("%v after a node is there it says %q", took, got)
		}
		<-time.After(time.Hour)
		if len(said) > 0 {
			t.Fatalf("it also says %q", <-said)
		}
		isUp.Store(false)
		go func() { _, _ = c.Defaults(t.Context()) }() // the call that is repeated
	}
}

// mortal is a connection that is cut once the node is down.
type mortal struct {
	net.Conn
	isUp *atomic.Bool
}

func (m *mortal) Write(p []byte) (int, error) {
	if !m.isUp.Load() {
		return 0, errors.New("connection reset")
	}
	return m.Conn.Write(p)
}

// A refusal is an answer, unless the node could do it later.
func TestAnswered(t *testing.T) {
	t.Parallel()
	for want, errs := range map[bool][]error{
		true:  {nil, &client.Error{Status: 401, Code: "unauthorized"}, &client.Error{Status: 404, Code: "not_found"}},
		false: {errors.New("refused"), &client.Error{Status: 404}, &client.Error{Status: 429, Code: "rate_limited"}, &client.Error{Status: 503, Code: "no_leader"}},
	} {
		for _, err := range errs {
			if got := Answered(err); got != want {
				t.Errorf("%v: %v", err, got)
			}
		}
	}
}
