package fuzz

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/claimq/claimq/api/wire"
)

// judge returns what is wrong with an answer, "" if nothing.
func judge(req *request, a *answer) string {
	if a.status == 0 {
		if req.sane && !req.waits {
			return fmt.Sprintf("no answer: %v", a.err)
		}
		return ""
	}
	if a.status == http.StatusInternalServerError || a.status > 500 && a.status != http.StatusServiceUnavailable && a.status != http.StatusGatewayTimeout {
		return fmt.Sprintf("status %d", a.status)
	}
	if a.status < 400 || req.method == http.MethodHead || a.err != nil && !req.sane {
		return ""
	}
	if wrong, ok := sqsWrong(a); ok {
		return wrong
	}
	var refusal wire.Refusal
	if err := json.Unmarshal(a.body, &refusal); err != nil {
		return fmt.Sprintf("status %d without a refusal: %v", a.status, err)
	}
	if got := refusal.Code.Status(); got != a.status {
		return fmt.Sprintf("status %d with code %q, whose status is %d", a.status, refusal.Code, got)
	}
	if req.sane && (refusal.Error == "" || refusal.RequestID == "") {
		return fmt.Sprintf("a refusal without error or request_id: %s", a.body)
	}
	return ""
}

// show returns a request in a form that can be read and sent again.
func show(req *request) string {
	const most = 600
	text := string(req.raw)
	if len(text) > most {
		text = text[:most] + fmt.Sprintf("... (%d bytes)", len(req.raw))
	}
	return strings.ReplaceAll(fmt.Sprintf("%q", text), `\r\n`, `\r\n `)
}
