package wire

import (
	"strings"
	"testing"
)

func TestValidTraceparent(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, want := range map[string]bool{
		trace: true,
		"00-00000000000000000000000000000001-0000000000000001-00": true,
		"":               false,
		trace + "-extra": false,
		trace[:54]:       false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"01" + trace[2:]:                                               false,
		"ff" + trace[2:]:                                               false,
		strings.ToUpper(trace):                                         false,
		strings.Replace(trace, "f", "g", 1):                            false,
		trace[:53] + "0x":                                              false,
		strings.Replace(trace, "-", "_", 1):                            false,
		trace[:35] + "a" + trace[36:]:                                  false,
		trace[:52] + "a" + trace[53:]:                                  false,
		"00-4bf92f3577b34da6a3ce929d0e0e47360-0f067aa0ba902b7-01":      false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 \xff": false,
	} {
		if got := ValidTraceparent([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
