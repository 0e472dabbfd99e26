package session

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/internal/certs"
)

// TLSFlags are the flags for the certificates of servers and of the client.
type TLSFlags struct{ caFile, certFile, keyFile string }

func (f *TLSFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the authorities that sign the certificates of https endpoints (CLAIMQ_CA_FILE; default: the system's)")
	flags.StringVar(&f.certFile, "cert-file", "", "PEM file of this client's certificate, for servers that want one (CLAIMQ_CERT_FILE)")
	flags.StringVar(&f.keyFile, "key-file", "", "PEM file of that certificate's private key (CLAIMQ_KEY_FILE)")
}

// Renewed reads the files, and reads them again while the command runs.
func (f *TLSFlags) Renewed() (*certs.Renewed, error) {
	if _, err := certs.OpenRenewed(nil, f.caFile, "", ""); err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, errors.New("--cert-file and --key-file go together: give both or none")
	}
	if _, err := certs.OpenRenewed(nil, "", f.certFile, f.keyFile); err != nil {
		return nil, fmt.Errorf("--cert-file and --key-file: %w", err)
	}
	return certs.OpenRenewed(nil, f.caFile, f.certFile, f.keyFile)
}
