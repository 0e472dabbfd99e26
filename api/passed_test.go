package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/nodes"
)

// passedOn is the connection of a request that another node has passed on, as the leader's handler sees it.
type passedOn struct {
	conntest.Nop
	pass nodes.Passing
	says nodes.Passed
}

func (c *passedOn) Passing() nodes.Passing { return c.pass }
func (c *passedOn) Passed() *nodes.Passed  { return &c.says }
func (c *passedOn) OnWritten(fn func())    { fn() }

func (c *passedOn) Hold(wait time.Duration) context.Context {
	if c.pass.Held == nil {
		return context.Background()
	}
	return c.pass.Held(wait)
}

// passOn answers a follower's request as the leader's peer port does.
func passOn(leader *Server, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
	conn := &passedOn{pass: pass}
	var ctx fasthttp.RequestCtx
	ctx.Init2(conn, nil, true)
	req.CopyTo(&ctx.Request)
	leader.ForwardHandler()(&ctx)
	if conn.says.GivenUp {
		return conn.says, nil
	}
	if size := len(ctx.Response.Body()); pass.Reserve != nil && size > 0 {
		if err := pass.Reserve(size); err != nil {
			if conn.says.Delivered != nil {
				conn.says.Delivered(false)
			}
			return nodes.Passed{}, fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, err)
		}
	}
	ctx.Response.CopyTo(resp)
	return conn.says, nil
}

// passesTo makes a follower's node pass requests on to the leader.
func passesTo(follower *nodetest.Node, leader *Server) {
	follower.OnForward = func(_ context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
		return passOn(leader, pass, req, resp)
	}
}

// passed makes a call as a follower that says pass of it.
func passed(t *testing.T, leader *Server, pass nodes.Passing, target, body string, headers ...string) answer {
	t.Helper()
	return do(t, func(ctx *fasthttp.RequestCtx) {
		if _, err := passOn(leader, pass, &ctx.Request, &ctx.Response); err != nil {
			t.Error(err)
		}
	}, target, body, headers...)
}
