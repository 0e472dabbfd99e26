package operate

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

const (
	// healthTimeout bounds the whole call.
	healthTimeout = 5 * time.Second
	// healthBytesMax bounds how much of the answer is read.
	healthBytesMax = 16 << 10
)

// NewHealthCommand returns the command `claimq health`.
func NewHealthCommand(a *term.App) *cobra.Command {
	var file string
	var o term.OutputFlag
	var ready bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether the server on this machine is alive, for example in a container",
		Long: `Check whether the server on this machine is alive or, with --ready, whether it knows
a leader and has caught up. The command finds the server by the server's own file,
variables and flags, and uses health_addr if that is set. It sends no key and does
not verify the certificate. If the server requires client certificates and has no
health_addr, the command only checks that the port accepts connections. Exit codes: 0
yes, 1 no, or no answer within 5 s.`,
		Example: `  claimq health --config /etc/claimq/claimq.yaml
  claimq health --ready --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				file = a.Getenv("CLAIMQ_CONFIG")
			}
			loaded, err := config.LoadServer(file, a.Environ, cmd.Flags())
			if err != nil {
				return term.UsageErrorf("the server's settings are needed, to find it: give --config FILE (CLAIMQ_CONFIG), or the variables and flags that it was started with\n%w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			said, err := askHealth(ctx, &loaded.Server, ready)
			if err != nil {
				return err
			}
			if o.Output == "json" {
				return term.ShowJSON(a.Stdout, said)
			}
			return a.Sayf("%s is %s", term.Printable(said.NodeID), term.Printable(said.Status))
		},
	}
	config.AddServerFlags(cmd.Flags())
	cmd.Flags().StringVar(&file, "config", "", "YAML file with settings (CLAIMQ_CONFIG)")
	o.Add(cmd)
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it knows a leader and has caught up")
	return cmd
}

// health is a server's answer about itself.
type health struct {
	Status  string `json:"status"` // alive, ready, or taking connections
	NodeID  string `json:"node_id"`
	Version string `json:"version,omitempty"`
}

// askHealth asks the server with that configuration for its health. It returns an error if the server is not well.
func askHealth(ctx context.Context, server *config.Server, ready bool) (health, error) {
	if server.HTTPTLS.ClientCAFile != "" && server.HealthAddr == "" {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", server.HTTPAddr)
		if err != nil {
			return health{}, err
		}
		return health{Status: "taking connections", NodeID: server.NodeID}, c.Close()
	}
	url := "http://" + cmp.Or(server.HealthAddr, server.HTTPAddr)
	if ready {
		url += "/readyz"
	} else {
		url += "/healthz"
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if server.HTTPTLS.CertFile != "" && server.HealthAddr == "" {
		url = "https" + url[len("http"):]
		// The certificate names the hosts that clients use, and this call may use another one. It sends no secret,
		// and the answer only has to come from this machine.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return health{}, err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return health{}, err
	}
	defer func() { _ = resp.Body.Close() }() // the unread rest does not matter
	if resp.StatusCode != http.StatusOK {
		return health{}, errors.New(term.Printable(url + " answered: " + readRefusal(resp).Error()))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, healthBytesMax))
	if err != nil {
		return health{}, err
	}
	var said health
	if err := json.Unmarshal(body, &said); err != nil || said.Status == "" {
		return health{}, fmt.Errorf("%s did not answer as claimq does: %s", url, term.Printable(string(body)))
	}
	return said, nil
}
