package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// SetJoinToken answers POST /api/cluster/tokens. The client makes the token and sends only its hash.
func SetJoinToken(r *exchange.Request) {
	cmd, bad := decodeJoinToken(r.HTTP.Request.Body(), &r.Server.Cfg.Limits)
	if bad != nil {
		r.Refuse(bad)
		return
	}
	cmd.By = r.By()
	p, ok := r.Propose(cmd)
	switch {
	case !ok:
	case p.Result.Code != "":
		r.Refuse(&refuse.Refusal{Code: wire.CodeMembershipRefused, Text: "There are too many join tokens", Advice: "Revoke one that is needed no more; 'claimq cluster token list' shows them"})
	default:
		b := appendJoinToken(append(r.Body(), `{"success":true,"token":`...), p.Result.JoinToken)
		r.Send(fasthttp.StatusOK, append(b, '}'))
	}
}

// decodeJoinToken decodes the body of a call that creates a join token.
func decodeJoinToken(body []byte, limits *bound.Limits) (cmd command.SetJoinToken, bad *refuse.Refusal) {
	const hashAllowed = "the SHA-256 of the token, 64 digits of hex"
	cmd.Uses = 1
	d := callbody.NewDecoder(body, limits)
	defer d.Free()
	bad = d.Fields(func(name []byte) (bad *refuse.Refusal) {
		switch string(name) {
		case "token_sha256":
			var text []byte
			if text, _, bad = d.Text("token_sha256", hashAllowed); bad == nil && text != nil {
				if cmd.Hash, _ = hex.DecodeString(string(text)); len(cmd.Hash) != sha256.Size {
					bad = d.Invalid("token_sha256", hashAllowed)
				}
			}
		case "expires_in_ms":
			cmd.LifeMS, _, bad = d.Integer("expires_in_ms", 1, fsm.JoinTokenLifeMax)
		case "uses":
			n, given, refused := d.Integer("uses", 1, fsm.JoinTokenUsesMax)
			if bad = refused; given && bad == nil {
				cmd.Uses = int32(n)
			}
		default:
			bad = d.Unknown(name)
		}
		return bad
	})
	switch {
	case bad != nil:
	case cmd.Hash == nil:
		bad = d.Missing("token_sha256")
	case cmd.LifeMS == 0:
		bad = d.Missing("expires_in_ms")
	}
	return cmd, bad
}

// JoinTokens answers GET /api/cluster/tokens.
func JoinTokens(r *exchange.Request) {
	var tokens []*fsm.JoinToken
	if !r.Read(func(m *fsm.Machine, _ fsm.Stamp) { tokens = m.JoinTokens() }) {
		return
	}
	b := jsonout.List(r.Body(), `{"success":true,"tokens":`, len(tokens), func(b []byte, i int) []byte { return appendJoinToken(b, tokens[i]) })
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// RevokeJoinToken answers POST /api/cluster/tokens/revoke.
func RevokeJoinToken(r *exchange.Request) {
	var id string
	d := r.Decoder()
	defer d.Free()
	bad := d.Fields(func(name []byte) (bad *refuse.Refusal) {
		if string(name) != "id" {
			return d.Unknown(name)
		}
		var text []byte
		text, _, bad = d.Text("id", "the id of a join token")
		id = string(text)
		return bad
	})
	if bad == nil && id == "" {
		bad = d.Missing("id")
	}
	if bad != nil {
		r.Refuse(bad)
		return
	}
	p, ok := r.Propose(command.DeleteJoinToken{ID: id, By: r.By()})
	switch {
	case !ok:
	case p.Result.Code != "":
		r.Refuse(&refuse.Refusal{Code: wire.CodeMembershipRefused, Text: fmt.Sprintf("No join token has the id %q", id), Advice: "It may have expired; 'claimq cluster token list' shows those that there are"})
	default:
		r.Send(fasthttp.StatusOK, append(r.Body(), `{"success":true}`...))
	}
}

// appendJoinToken appends a join token.
func appendJoinToken(b []byte, t *fsm.JoinToken) []byte {
	b = append(append(b, `{"id":"`...), t.ID()...)
	b = jsonout.IntField(b, `","uses":`, int64(t.Uses))
	b = jsonout.IntField(b, `,"used":`, int64(len(t.UsedBy)))
	b = jsonout.TimeField(b, `,"created_at":`, t.CreatedAt)
	b = jsonout.TimeField(b, `,"expires_at":`, t.ExpiresAt)
	return append(b, '}')
}
