package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makeKey creates a key with ssh-keygen and returns its file.
func makeKey(t *testing.T, kind string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "release.key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "releases", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	return path
}

// verify does what docs/install.md says: it checks the signature of the sums in a folder
// against the public half of a key.
func verify(t *testing.T, dir, key string, sums []byte) error {
	t.Helper()
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(t.TempDir(), "claimq.signers")
	if err := os.WriteFile(signers, append([]byte("claimq "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	const command = "ssh-keygen -Y verify -f claimq.signers -I claimq -n claimq-release -s SHA256SUMS.sig"
	if !strings.Contains(string(page), command+" < SHA256SUMS\n") {
		t.Errorf("docs/install.md does not say %q", command)
	}
	args := strings.Fields(strings.Replace(command, "claimq.signers", signers, 1))
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(sums)
	return cmd.Run()
}

// checkSignature checks the signature of a release with its key, with another key, and for
// other sums.
func checkSignature(t *testing.T, dir, key string) {
	t.Helper()
	sums := readFile(t, dir, "SHA256SUMS")
	if err := verify(t, dir, key, sums); err != nil {
		t.Errorf("the signature is not one of the key: %v", err)
	}
	if err := verify(t, dir, makeKey(t, "ed25519"), sums); err == nil {
		t.Error("the signature is one of another key too")
	}
	sums[0] ^= 1
	if err := verify(t, dir, key, sums); err == nil {
		t.Error("the signature is one of other sums too")
	}
}

// A release without a key removes the signature of an earlier one.
func TestSign_none(t *testing.T) {
	t.Parallel()
	o := options{out: t.TempDir()}
	old := filepath.Join(o.out, signatureName)
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("sums that are not signed have a signature beside them")
	}
}
