package bodies

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The body of a shared request is its items separated by commas, however it is read, and can be read again.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, items := range [][]string{{`{"a":1}`}, {`{"a":1}`, `{}`}, {"x", strings.Repeat("y", 5000), "", "z"}} {
		j := &Joined{Open: `{"ops":[`}
		for _, item := range items {
			j.Items = append(j.Items, []byte(item))
		}
		want := `{"ops":[` + strings.Join(items, ",") + `]}`
		if j.Size() != int64(len(want)) {
			t.Errorf("%d items: size %d, want %d", len(items), j.Size(), len(want))
		}
		if err := iotest.TestReader(j.Reader(), []byte(want)); err != nil {
			t.Errorf("%d items: %v", len(items), err)
		}
		for range 2 {
			if got, err := io.ReadAll(iotest.OneByteReader(j.Reader())); err != nil || string(got) != want {
				t.Errorf("%d items: %q, %v", len(items), got, err)
			}
		}
	}
}
