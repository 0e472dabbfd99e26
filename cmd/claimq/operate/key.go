package operate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
)

// newSecret makes a secret that begins with prefix, so that a leaked one can be found in a log or a repository. It
// has 256 random bits, so a plain hash of it reveals nothing.
func newSecret(prefix string) (secret, hash string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	secret = prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
	sum := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(sum[:])
}

// NewKeyCommand returns the command `claimq key`.
func NewKeyCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:     "key",
		Short:   "Make, show and reload API keys",
		Example: "  claimq key generate --role producer --name shop",
	}, newKeyGenerateCommand(a), newKeyListCommand(a), newKeyReloadCommand(a))
}

// GeneratedKey is a new key.
type GeneratedKey struct {
	Name               string   `json:"name"`
	Role               string   `json:"role,omitempty"`
	Roles              []string `json:"roles,omitempty"`
	Key                string   `json:"key"`
	SHA256             string   `json:"key_sha256"`
	RateLimitPerMinute *int64   `json:"rate_limit_per_minute,omitempty"`
	TaskTypes          []string `json:"task_types,omitempty"`
	ExpiresAt          string   `json:"expires_at,omitempty"`
	Addresses          []string `json:"addresses,omitempty"`
}

func newKeyGenerateCommand(a *term.App) *cobra.Command {
	var k GeneratedKey
	var rate int64
	var roles []string
	var expiresAt string
	var o term.OutputFlag
	var expiresIn time.Duration
	cmd := &cobra.Command{
		Use:   "generate --role ROLE... --name NAME",
		Short: "Make an API key",
		Long: `Make an API key of 256 random bits and print it once, together with the entry for the
servers' configuration: its name, its role and its hash. The command stores nothing
and contacts no server.

Roles: reader (GETs), producer (submit, change, cancel, retry, delete, and GETs),
worker (claim, complete, fail, extend, release, finalization, and GETs), operator
(everything). A key with several roles may do what any of them may.

If the configuration has no rate for a key, the key may make 100 requests a minute.
That is too few for a worker or a producer, so the entry for these keys has a rate: 0
(no limit) unless --rate is given.`,
		Example: `  claimq key generate --role producer --name shop
  claimq key generate --role worker --name mailer --type mail --rate 6000 --output json
  claimq key generate --role reader --name audit --expires-in 2160h`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len(roles) == 0:
				return term.UsageErrorf("--role is missing: it must be reader, producer, worker or operator")
			case k.Name == "":
				return term.UsageErrorf("--name is missing: say what the key is called in the trail and in metrics")
			}
			// The servers' standard rate would stop workers and producers in production.
			if cmd.Flags().Changed("rate") || slices.Contains(roles, "worker") || slices.Contains(roles, "producer") {
				k.RateLimitPerMinute = &rate
			}
			if k.Roles = roles; len(roles) == 1 {
				k.Role, k.Roles = roles[0], nil
			}
			at, err := expiry(cmd.Flags().Changed("expires-in"), expiresIn, expiresAt, time.Now())
			if err != nil {
				return err
			}
			k.ExpiresAt = at
			if err := k.make(); err != nil {
				return err
			}
			if o.Output == "json" {
				return term.ShowJSON(a.Stdout, k)
			}
			_, err = fmt.Fprint(a.Stdout, k.Text())
			return err
		},
	}
	cmd.Flags().StringSliceVar(&roles, "role", nil, "reader, producer, worker or operator; repeatable: it may do what any of them may")
	cmd.Flags().StringVar(&k.Name, "name", "", "name for the trail and for metrics: 1 to 64 of A-Z a-z 0-9 _ . -")
	cmd.Flags().Int64Var(&rate, "rate", 0, "requests a minute at each node, and at once; 0 = no limit (default: of a worker or producer 0, of others the servers' standard 100)")
	cmd.Flags().StringSliceVar(&k.TaskTypes, "type", nil, "task type that it is for; repeatable (default: all)")
	cmd.Flags().StringSliceVar(&k.Addresses, "address", nil, "address or prefix, as 10.0.0.0/8, that it may be used from; repeatable (default: all)")
	term.DurationVar(cmd.Flags(), &expiresIn, "expires-in", 0, "how long servers accept it, as 90d (default: for ever)")
	cmd.Flags().StringVar(&expiresAt, "expires-at", "", "time from which servers refuse it, in RFC 3339, as 2027-01-31T12:00:00Z")
	o.Add(cmd)
	return cmd
}

// expiry returns the time from which a key is refused, or "" for never. in counts from now, if given is true.
func expiry(given bool, in time.Duration, at string, now time.Time) (string, error) {
	switch {
	case given && at != "":
		return "", term.UsageErrorf("--expires-in and --expires-at: give only one of them")
	case given && in < time.Second:
		return "", term.UsageErrorf("--expires-in is %v: it must be at least 1s", in)
	case given:
		return now.Add(in).UTC().Format(time.RFC3339), nil
	case at == "":
		return "", nil
	}
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "", term.UsageErrorf("--expires-at is %q: it must be a time of RFC 3339, as 2027-01-31T12:00:00Z", at)
	}
	if !t.After(now) {
		return "", term.UsageErrorf("--expires-at is %s, which is over: servers would refuse the key", at)
	}
	return at, nil
}

// make makes the key, after it has checked the key's settings.
func (k *GeneratedKey) make() error {
	k.Key, k.SHA256 = newSecret(door.KeyPrefix)
	addresses, err := k.prefixes()
	if err != nil {
		return err
	}
	err = door.CheckKeys([]door.Key{{
		Field: "the key", Name: k.Name, Role: k.Role, Roles: k.Roles, SHA256: k.SHA256, RateLimitPerMinute: k.RateLimitPerMinute, TaskTypes: k.TaskTypes,
		Addresses: addresses,
	}})
	if err != nil {
		return term.UsageErrorf("%s", settingOfKey.ReplaceAllStringFunc(err.Error(), flagOf))
	}
	return nil
}

// settingOfKey matches the setting that a check of the key names.
var settingOfKey = regexp.MustCompile(`the key\.(role|name|task_type|rate|address)[a-z_]*(\[\d+\])?`)

// flagOf returns the flag that a setting comes from.
func flagOf(setting string) string {
	return "--" + strings.TrimPrefix(settingOfKey.FindStringSubmatch(setting)[1], "task_")
}

// prefixes parses the key's addresses.
func (k *GeneratedKey) prefixes() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for i, text := range k.Addresses {
		p, err := config.ParseAddress(text)
		if err != nil {
			return nil, term.UsageErrorf("--address: %w", err)
		}
		k.Addresses[i] = config.FormatAddress(p)
		all = append(all, p)
	}
	return all, nil
}

// Text tells the user what to do with the key.
func (k *GeneratedKey) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "For the client, as CLAIMQ_API_KEY (it is not shown again):\n\n  %s\n\n", k.Key)
	fmt.Fprintf(&b, "%s\n\n", k.rateText())
	fmt.Fprintf(&b, "For each server's configuration file or keys_file; then 'claimq key reload' or SIGHUP:\n\n")
	fmt.Fprintf(&b, "keys:\n  - name: %q\n", k.Name)
	if k.Role != "" {
		fmt.Fprintf(&b, "    role: %s\n", k.Role)
	}
	writeTexts(&b, "roles", k.Roles)
	fmt.Fprintf(&b, "    key_sha256: %q\n", k.SHA256)
	if k.RateLimitPerMinute != nil {
		fmt.Fprintf(&b, "    rate_limit_per_minute: %d\n", *k.RateLimitPerMinute)
	}
	writeTexts(&b, "task_types", k.TaskTypes)
	if k.ExpiresAt != "" {
		fmt.Fprintf(&b, "    expires_at: %s\n", k.ExpiresAt)
	}
	writeTexts(&b, "addresses", k.Addresses)
	return b.String()
}

// rateText says how many requests the key may make.
func (k *GeneratedKey) rateText() string {
	switch rate := k.RateLimitPerMinute; {
	case rate == nil:
		return "It may make 100 requests a minute at each node, the servers' standard; more are answered 429 rate_limited. --rate says another number."
	case *rate == 0:
		return "It may make any number of requests (rate_limit_per_minute 0). --rate sets a limit."
	default:
		return fmt.Sprintf("It may make %s a minute at each node, and as many at once; more are answered 429 rate_limited.", term.Count(*rate, "request"))
	}
}

// writeTexts writes a field of a key that is a list of texts. It writes nothing for an empty list.
func writeTexts(b *strings.Builder, field string, texts []string) {
	if len(texts) == 0 {
		return
	}
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = fmt.Sprintf("%q", t)
	}
	fmt.Fprintf(b, "    %s: [%s]\n", field, strings.Join(quoted, ", "))
}

// reloaded is a server's answer after it has read its keys again.
type reloaded struct {
	NodeID string `json:"node_id"`
	Keys   int64  `json:"keys"`
}

func newKeyReloadCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make servers reload their API keys",
		Long: `Make each server that --endpoint names reload its API keys, without a restart. Name
all servers, because each has its own configuration.

If a server finds a mistake in its configuration, it keeps its present keys and
reports the mistake. The call needs an operator's key.

To replace a key while clients keep working: add the new key on all nodes and reload,
move the clients to it, then remove the old key on all nodes and reload.`,
		Example: "  claimq key reload --endpoint http://10.0.0.1:7400 --endpoint http://10.0.0.2:7400",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(f.Endpoints) == 0 {
				return session.NoEndpoint()
			}
			var errs []error
			for _, endpoint := range f.Endpoints {
				one := f
				one.Endpoints = []string{endpoint}
				errs = append(errs, session.With(a, &one, func(s session.Talk) error {
					r, err := session.Post("/api/reload", []byte(nil), "Reload again: it does no harm.")
					if err != nil {
						return err
					}
					return session.Ask(cmd.Context(), s, r.Once(), func(answer *reloaded) error {
						return a.Sayf("%s has %s", term.Printable(answer.NodeID), term.Count(answer.Keys, "key"))
					})
				}))
			}
			return errors.Join(errs...)
		},
	}
	session.AddFlags(a, cmd, &f)
	return cmd
}
