package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/claimq/claimq/internal/procs"
)

// secrets are API keys and a certificate for nodes on this machine.
type secrets struct {
	keys  map[string]string // by role; "narrow" is a worker's for one task type
	flags []string          // of the nodes
	tls   *tls.Config       // for clients
}

// newSecrets creates them, in files in dir.
func newSecrets(dir string) (*secrets, error) {
	keysFile := filepath.Join(dir, "keys.yaml")
	keys, err := procs.WriteKeys(keysFile, map[string]string{
		"reader": "role: reader", "producer": "role: producer", "worker": "role: worker", "operator": "role: operator",
		"narrow": "role: worker, task_types: [mail]",
	})
	if err != nil {
		return nil, err
	}
	s := &secrets{keys: keys}
	certFile, keyFile := filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")
	s.flags = []string{"--keys-file", keysFile, "--http-tls-cert-file", certFile, "--http-tls-key-file", keyFile}
	if s.tls, err = certificate(certFile, keyFile); err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return s, nil
}

// certificate writes net/http/httptest's certificate for 127.0.0.1 and its key, and returns
// the client's configuration.
func certificate(certFile, keyFile string) (*tls.Config, error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}
