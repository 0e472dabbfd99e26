package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// A backup contains tasks, but no secret that gives access: no node's key, no join key, no
// join token.
func TestSaveBackup_hasNoSecrets(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	joinKey := []byte("the join key of a backup's cluster")
	cfg.JoinKeys = func() [][]byte { return [][]byte{joinKey} }
	n := openNode(t, cfg)
	token, err := joinTokenOf(t, n)()
	if err != nil {
		t.Fatal(err)
	}
	pageSecret := sha256.Sum256([]byte("the page's secret"))
	if _, err := n.Propose(t.Context(), command.SetPageSecret{Secret: pageSecret[:]}); err != nil {
		t.Fatal(err)
	}
	const params = `"params that a backup has"`
	if _, err := n.Propose(t.Context(), command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte(params)}}}); err != nil {
		t.Fatal(err)
	}
	backup := save(t, n)
	hash := sha256.Sum256([]byte(token))
	for what, content := range map[string][]byte{"a task": []byte(params), "a token's hash": hash[:], "the node's identity": []byte(n.uuid)} {
		if !bytes.Contains(backup, content) {
			t.Errorf("the backup has no %s as it is: this test cannot tell", what)
		}
	}
	file, err := os.ReadFile(filepath.Join(cfg.DataDir, "node.key"))
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Split(file, []byte("\n"))[1] // the lines of PEM itself are not secret
	seed := n.dir.Key().Seed()
	for what, secret := range map[string][]byte{
		"the node's key": seed, "the node's key in base64": []byte(base64.StdEncoding.EncodeToString(seed)), "the node's key in PEM": line,
		"the join key": joinKey, "the join token": []byte(token), "the page's secret": pageSecret[:],
	} {
		if bytes.Contains(backup, secret) {
			t.Errorf("the backup has %s", what)
		}
	}
}
