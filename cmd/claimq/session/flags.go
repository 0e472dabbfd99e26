package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/certs"
	"github.com/claimq/claimq/internal/keyfile"
)

// Defaults of --timeout. CallTimeout covers a change of the leader and the following repeats; users who look at
// something would rather look again.
const (
	CallTimeout = 30 * time.Second
	LookTimeout = 5 * time.Second
)

// Flags are the common flags of all commands that call a server.
type Flags struct {
	Endpoints []string
	APIKey    string
	KeyFile   string
	TLS       TLSFlags
	Timeout   time.Duration
	Outages   *Outages // of a command that runs until it is stopped; nil for others
	Output    string
	outputs   []string // valid values of output
}

// AddFlags gives cmd the common flags, and lets variables set its flags, such as CLAIMQ_WORKER for --worker. A flag
// overrides its variable.
func AddFlags(a *term.App, cmd *cobra.Command, f *Flags, moreOutputs ...string) {
	f.outputs = append([]string{"table", "json"}, moreOutputs...)
	flags := cmd.Flags()
	f.AddNodeFlags(flags)
	term.DurationVar(flags, &f.Timeout, "timeout", CallTimeout, "how long to keep trying")
	flags.StringVar(&f.Output, "output", "table", strings.Join(f.outputs, ", ")+": json is the server's unchanged answer")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.SetFromVariables(a, cmd.Flags()); err != nil {
			return err
		}
		return f.check()
	}
}

// Within changes the default of a command's --timeout.
func Within(cmd *cobra.Command, timeout time.Duration) {
	flag := cmd.Flags().Lookup("timeout")
	flag.DefValue = timeout.String()
	_ = flag.Value.Set(flag.DefValue) // a duration always parses
}

// AddNodeFlags adds the flags for the nodes' addresses and for authentication.
func (f *Flags) AddNodeFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Endpoints, "endpoint", []string{"http://127.0.0.1:7400"}, "URL of a node; repeatable (CLAIMQ_ENDPOINTS)")
	flags.StringVar(&f.APIKey, "api-key", "", "API key (CLAIMQ_API_KEY, which ps does not show)")
	flags.StringVar(&f.KeyFile, "api-key-file", "", "file with the API key or a token, one line, read again while the command runs (CLAIMQ_API_KEY_FILE)")
	f.TLS.add(flags)
}

// SetFromVariables sets the flags that were not given, and warns of secrets that others can read. A flag for the key
// overrides the other one's variable; of two variables the one with the key itself wins.
func (f *Flags) SetFromVariables(a *term.App, flags *pflag.FlagSet) error {
	key, file := flags.Changed("api-key"), flags.Changed("api-key-file")
	if err := term.SetFromVariables(a, flags); err != nil {
		return err
	}
	if key && file {
		return term.UsageErrorf("--api-key and --api-key-file are both given: give one of them")
	}
	f.oneKey(file)
	a.WarnOfSecret(f.TLS.keyFile)
	a.WarnOfSecret(f.KeyFile)
	return nil
}

// oneKey keeps one of key and file.
func (f *Flags) oneKey(file bool) {
	switch {
	case file:
		f.APIKey = ""
	case f.APIKey != "":
		f.KeyFile = ""
	}
}

func (f *Flags) check() error {
	for _, o := range f.outputs {
		if f.Output == o {
			if f.Timeout <= 0 {
				return term.UsageErrorf("--timeout is %v: it must be positive", f.Timeout)
			}
			return nil
		}
	}
	return term.UsageErrorf("--output is %q: it must be one of %s", f.Output, strings.Join(f.outputs, ", "))
}

// KeySource returns a function that returns the key to send, or "".
func (f *Flags) KeySource() (func() string, error) {
	if f.KeyFile == "" {
		return func() string { return f.APIKey }, nil
	}
	file, err := keyfile.Open(f.KeyFile)
	if err != nil {
		return nil, term.UsageErrorf("--api-key-file: %w", err)
	}
	return file.Key, nil
}

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
