package fsm

import (
	"bytes"
	"testing"

	"github.com/claimq/claimq/fsm/command"
)

// The first secret stays. A secret of another length is refused.
func TestSetPageSecret(t *testing.T) {
	t.Parallel()
	m := New()
	set := func(index uint64, secret []byte) Result {
		t.Helper()
		return applyLog(t, m, []testEntry{{Index: index, Commands: []command.Command{command.SetPageSecret{Secret: secret}}}})[0].Results[0]
	}
	for i, secret := range [][]byte{nil, {}, make([]byte, command.PageSecretBytes-1), make([]byte, command.PageSecretBytes+1)} {
		if got := set(uint64(i+1), secret); got.Code != CodeInvalidRequest || m.PageSecret() != nil {
			t.Errorf("%d bytes: %+v, the secret is %x", len(secret), got, m.PageSecret())
		}
	}
	before := hashOf(m)
	first, second := tokenHash("one"), tokenHash("two")
	if got := set(10, first); got.Code != "" || got.Repeated || !bytes.Equal(m.PageSecret(), first) {
		t.Errorf("the first: %+v, the secret is %x", got, m.PageSecret())
	}
	if hashOf(m) == before {
		t.Error("the state's hash does not have the secret")
	}
	if got := set(11, second); !got.Repeated || !bytes.Equal(m.PageSecret(), first) {
		t.Errorf("the second: %+v, the secret is %x", got, m.PageSecret())
	}
	if restored := restore(t, snapshotOf(t, m)); !bytes.Equal(restored.PageSecret(), first) {
		t.Errorf("behind a snapshot the secret is %x", restored.PageSecret())
	}
}

// Neither a backup nor a cluster behind a restore has a secret: not the backup's, and not
// its own of before.
func TestSetPageSecret_Restore(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	if m.PageSecret() == nil {
		t.Fatal("there is no secret to lose")
	}
	if b := backupOf(t, m); bytes.Contains(b, m.PageSecret()) {
		t.Error("the backup has the secret")
	}
	if restored := restoredMachine(t, m); restored.PageSecret() != nil {
		t.Errorf("behind a restore the secret is %x", restored.PageSecret())
	}
}

// A node that goes on alone does not take the logins of the cluster that it was in: the
// nodes that are left behind have its secret.
func TestSetPageSecret_recover(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	if m.PageSecret() == nil {
		t.Fatal("there is no secret to lose")
	}
	if err := m.JumpCounters(m.Stamp().T); err != nil || m.PageSecret() != nil {
		t.Errorf("error %v, the secret is %x", err, m.PageSecret())
	}
}
