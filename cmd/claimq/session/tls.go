package session

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/internal/certs"
)

// TLSFlags say how a client command knows its servers, and they it.
type TLSFlags struct{ caFile, certFile, keyFile string }

func (f *TLSFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the authorities that sign the certificates of https endpoints (CLAIMQ_CA_FILE; default: the system's)")
	flags.StringVar(&f.certFile, "cert-file", "", "PEM file of this client's certificate, for servers that want one (CLAIMQ_CERT_FILE)")
	flags.StringVar(&f.keyFile, "key-file", "", "PEM file of that certificate's private key (CLAIMQ_KEY_FILE)")
}

// Config reads the files; nil: none are named.
func (f *TLSFlags) Config() (*tls.Config, error) {
	if *f == (TLSFlags{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.caFile != "" {
		text, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		if c.RootCAs, err = certs.ParseAuthorities(f.caFile, text); err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
	}
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, errors.New("--cert-file and --key-file go together: give both or none")
	}
	if f.certFile != "" {
		own, err := certs.Open(certs.Files{Cert: f.certFile, Key: f.keyFile})
		if err != nil {
			return nil, fmt.Errorf("--cert-file and --key-file: %w", err)
		}
		c.Certificates = []tls.Certificate{own.Current().Certificate}
	}
	return c, nil
}
