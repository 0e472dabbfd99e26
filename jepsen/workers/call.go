package workers

import (
	"encoding/json"
	"strings"
)

// call is a kind of call that workers make.
type call string

// The kinds.
const (
	claim            call = "claim"
	extend           call = "extend"
	complete         call = "complete"
	completeAndClaim call = "complete and claim"
	fail             call = "fail"
	release          call = "release"
	other            call = "other"
)

// calls lists the kinds at which strikes happen.
var calls = [...]call{claim, extend, complete, completeAndClaim, fail, release}

// callOf returns the kind of a request.
func callOf(path string, body []byte) call {
	switch path {
	case "/api/tasks/claim":
		return claim
	case "/api/batch": // only to give claims back
		return release
	}
	_, verb, _ := strings.Cut(strings.TrimPrefix(path, "/api/tasks/"), "/")
	switch kind := call(verb); kind {
	case complete:
		var asked struct{ Claim json.RawMessage }
		if json.Unmarshal(body, &asked) == nil && asked.Claim != nil {
			return completeAndClaim
		}
		return complete
	case extend, fail, release:
		return kind
	}
	return other
}
