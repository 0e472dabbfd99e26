package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// secrets are API keys and a certificate for nodes on this machine.
type secrets struct {
	keys  map[string]string // by role; "narrow" is a worker's for one task type
	flags []string          // of the nodes
	tls   *tls.Config       // of those who ask them
}

// newSecrets makes them, in files in dir.
func newSecrets(dir string) (*secrets, error) {
	s := &secrets{keys: map[string]string{}}
	var entries strings.Builder
	entries.WriteString("keys:\n")
	for _, role := range []string{"reader", "producer", "worker", "operator", "narrow"} {
		key := "claimq_" + strings.ToLower(rand.Text()+rand.Text())
		s.keys[role] = key
		fmt.Fprintf(&entries, "  - {name: %s, key_sha256: %x, rate_limit_per_minute: 0, ", role, sha256.Sum256([]byte(key)))
		if role == "narrow" {
			entries.WriteString("role: worker, task_types: [mail]}\n")
		} else {
			fmt.Fprintf(&entries, "role: %s}\n", role)
		}
	}
	keysFile := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keysFile, []byte(entries.String()), 0o600); err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")
	s.flags = []string{"--keys-file", keysFile, "--http-tls-cert-file", certFile, "--http-tls-key-file", keyFile}
	cert, err := selfSigned(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	s.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return s, nil
}

// selfSigned writes a certificate for 127.0.0.1, good for a day, and its key.
func selfSigned(certFile, keyFile string) (*x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
