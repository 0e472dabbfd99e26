package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	sumsName      = "SHA256SUMS"
	signatureName = sumsName + ".sig"
	// signatureNamespace ensures that these signatures are not valid for anything else that
	// the same key signs.
	signatureNamespace = "claimq-release"
)

var ed25519Key = regexp.MustCompile(`\(ED25519(-SK)?\)\n$`)

// sign writes an OpenSSH signature of the sums next to them, with the key in the file: a
// private key, or the public half of one in an agent or a token. It must be Ed25519.
// Without a key it removes any older signature.
func (o *options) sign(ctx context.Context) error {
	path := filepath.Join(o.out, signatureName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if o.signKey == "" {
		fmt.Println(sumsName + " is not signed: no key was given")
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(o.out, sumsName))
	if err != nil {
		return err
	}
	signature, err := sshKeygen(ctx, sums, "-Y", "sign", "-n", signatureNamespace, "-f", o.signKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, signature, 0o644); err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}

// checkSignKey refuses a file that is not an Ed25519 key, before anything is built.
func (o *options) checkSignKey(ctx context.Context) error {
	if o.signKey == "" {
		return nil
	}
	about, err := sshKeygen(ctx, nil, "-l", "-f", o.signKey)
	if err != nil {
		return err
	}
	if !ed25519Key.Match(about) {
		return fmt.Errorf("the key to sign with is %q: it must be an Ed25519 key (ssh-keygen -t ed25519)", bytes.TrimSpace(about))
	}
	return nil
}

// sshKeygen runs ssh-keygen with input and returns its output.
func sshKeygen(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh-keygen", args...)
	cmd.Stdin = bytes.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ssh-keygen %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
