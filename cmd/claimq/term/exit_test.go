package term

import (
	"strings"
	"testing"

	"github.com/claimq/claimq/client"
)

// After a refused key the user sees every way to give one.
func TestCallText_Unauthorized(t *testing.T) {
	t.Parallel()
	text := callText(nil, &CallError{Err: &client.Error{Status: 401, Code: "unauthorized", Text: "Unknown API key"}})
	for _, way := range []string{"CLAIMQ_API_KEY,", "--api-key ", "--api-key-file ", "claimq key generate"} {
		if !strings.Contains(text, way) {
			t.Errorf("%q does not name %q", text, way)
		}
	}
}
