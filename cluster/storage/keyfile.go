package storage

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/claimq/claimq/cluster/nodekey"
)

// nodeKeyFileName is the file with a node's private key: PKCS #8 in PEM, mode 0600, written
// once, before the identity. A process that has the key is the node.
const nodeKeyFileName = "node.key"

// nodeKeyPEM is the type of its PEM block.
const nodeKeyPEM = "PRIVATE KEY"

// takeNodeKey returns the key of a folder without an identity: an existing one, after an
// interrupted start, or a new one, which is then on disk.
func takeNodeKey(dir string) (ed25519.PrivateKey, error) {
	key, err := readNodeKey(dir)
	if !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	if _, key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, fmt.Errorf("make a node's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a node's key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: nodeKeyPEM, Bytes: der})
	if err := writeFileDurably(filepath.Join(dir, nodeKeyFileName), text); err != nil {
		return nil, storageError(dir, "write "+nodeKeyFileName, err)
	}
	return key, nil
}

// readNodeKey returns the key in dir. Errors: os.ErrNotExist, ErrCorruptIdentity, those of
// reading.
func readNodeKey(dir string) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, nodeKeyFileName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, DirError(dir, err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != nodeKeyPEM {
		return nil, corruptIdentity(path, "it is no private key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, corruptIdentity(path, err.Error())
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, corruptIdentity(path, "it is no Ed25519 key")
	}
	return key, nil
}

// keyOf returns the key in dir of the node with that identity. ErrCorruptIdentity if it is
// missing or belongs to another node.
func keyOf(dir string, id Identity) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, nodeKeyFileName)
	key, err := readNodeKey(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, corruptIdentity(path, "the file is missing, but there is "+IdentityFile)
	case err != nil:
		return nil, err
	case nodekey.UUID(nodekey.Public(key)) != id.UUID:
		return nil, corruptIdentity(path, "it is the key of another node than "+id.UUID)
	}
	return key, nil
}
