package term

import (
	"io/fs"
	"testing"
)

// Only the server's user may access its own file. A file of another user may be readable by its group, but not
// writable.
func TestJudgeSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perm   fs.FileMode
		own    bool
		closed fs.FileMode
		open   bool
	}{
		{0o600, true, 0o600, false},
		{0o400, true, 0o400, false},
		{0o640, true, 0o600, true},
		{0o604, true, 0o600, true},
		{0o610, true, 0o600, true},
		{0o440, false, 0o440, false},
		{0o640, false, 0o640, false},
		{0o660, false, 0o640, true},
		{0o644, false, 0o640, true},
		{0o444, false, 0o440, true},
	} {
		if mode, closed, open := checkSecret(c.perm, c.own); mode != c.perm || closed != c.closed || open != c.open {
			t.Errorf("%04o, own %v: %04o, %04o, %v", c.perm, c.own, mode, closed, open)
		}
	}
}
