package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// A processor whose claim runs out while it reads the parts is refused, and tries again.
func TestProcess_losesItsClaim(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := describe("", true)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Client().SubmitWorkflow(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	for {
		claim, err := s.Client().ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1"})
		if err != nil {
			break // all steps are done
		}
		if err := claim.Complete(ctx, []byte(`1`)); err != nil {
			t.Fatal(err)
		}
	}

	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var once sync.Once
	slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Host = target.Host
		if r.URL.Query().Has("parent_id") {
			once.Do(func() { s.Advance(finalizationTimeout + time.Second) })
		}
		proxy.ServeHTTP(rw, r)
	}))
	defer slow.Close()
	c, err := client.New(client.Config{Endpoints: []string{slow.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var said strings.Builder
	if err := (&program{c: c, out: &said}).process(ctx, "p1", w); err != nil {
		t.Errorf("it gave up: %v", err)
	}
	want := fmt.Sprintf("p1 was too slow: its claim is over\np1 finalized task %s: it is completed\n", w.ID)
	if got := said.String(); got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}
