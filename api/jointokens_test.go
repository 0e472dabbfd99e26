package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

const (
	tokenHash = "13657558360cbd549f6ec19d6964e1fcde31b76528d00b7572337564959e9adc"
	makeToken = "POST /api/cluster/tokens"
)

// A token is made once however often the call is repeated, listed, and revoked.
func TestJoinTokens(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	if _, err := node.Apply(command.SetLevel{Level: fsm.FeatureLevel()}); err != nil {
		t.Fatal(err)
	}
	token := `{"id":"13657558360c","uses":2,"used":0,"created_at":`
	body := `{"token_sha256":"` + strings.ToUpper(tokenHash) + `","expires_in_ms":60000,"uses":2}`
	for range 2 {
		if got := s.call(t, makeToken, body); got.status != 200 || !strings.HasPrefix(got.body, `{"success":true,"token":`+token) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := s.call(t, makeToken, `{"token_sha256":"`+strings.Repeat("a", 64)+`","expires_in_ms":60000,"uses":null}`); !strings.Contains(got.body, `"uses":1,`) {
		t.Errorf("for one node: %s", got.body)
	}
	if got := s.call(t, "GET /api/cluster/tokens", ""); !strings.HasPrefix(got.body, `{"success":true,"tokens":[`+token) || strings.Count(got.body, `"id":`) != 2 {
		t.Errorf("listed: %s", got.body)
	}
	if got := s.call(t, "POST /api/cluster/tokens/revoke", `{"id":"13657558360c"}`); got.body != `{"success":true}` {
		t.Errorf("revoked: %s", got.body)
	}
	s.call(t, "POST /api/cluster/tokens/revoke", `{"id":"13657558360c"}`).refused(t, wire.CodeMembershipRefused)
	var told []string
	for _, e := range node.Machine.Events(event.Query{Limit: 100}).Events {
		if e.Kind >= event.JoinTokenMade {
			told = append(told, e.Kind.String()+" "+e.Message)
		}
	}
	want := []string{"join_token_made 13657558360c for 2, 60 s", "join_token_made aaaaaaaaaaaa for 1, 60 s", "join_token_revoked 13657558360c"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestJoinTokens_tooMany(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for i := range 16 {
		hash := strings.Repeat(string("0123456789abcdef"[i]), 64)
		s.call(t, makeToken, `{"token_sha256":"`+hash+`","expires_in_ms":1}`).good(t, 200)
	}
	s.call(t, makeToken, `{"token_sha256":"`+tokenHash+`","expires_in_ms":1}`).refused(t, wire.CodeMembershipRefused)
}

func TestJoinTokens_badInput(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	hash := `"token_sha256":"` + tokenHash + `"`
	for target, bodies := range map[string][]string{
		makeToken: {
			``, `{}`, `{` + hash + `}`, `{"expires_in_ms":1}`, `{` + hash + `,"expires_in_ms":0}`, `{` + hash + `,"expires_in_ms":2592000001}`,
			`{` + hash + `,"expires_in_ms":1,"uses":0}`, `{` + hash + `,"expires_in_ms":1,"uses":33}`, `{` + hash + `,"expires_in_ms":1,"token":"x"}`,
			`{"token_sha256":"zz","expires_in_ms":1}`, `{"token_sha256":"` + tokenHash + `00","expires_in_ms":1}`, `{"token_sha256":1,"expires_in_ms":1}`,
		},
		"POST /api/cluster/tokens/revoke": {``, `{}`, `{"id":""}`, `{"id":1}`, `{"id":"13657558360C"}`, `{"id":"13657558360"}`, `{"token":"x"}`},
		"GET /api/cluster/tokens?x=1":     {``},
	} {
		for _, body := range bodies {
			s.call(t, target, body).refused(t, wire.CodeInvalidRequest)
		}
	}
	if len(node.Proposed) != 0 {
		t.Errorf("proposed: %v", node.Proposed)
	}
}
