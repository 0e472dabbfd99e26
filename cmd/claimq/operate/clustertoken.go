package operate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const (
	// tokenPrefix is how every join token begins that this command makes, and
	// tokenBytes how many random bytes it has: as for keys.
	tokenPrefix = "claimqjoin_"
	tokenBytes  = 32
)

func newClusterTokenCommand(a *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke join tokens",
		Long: `Make, list and revoke join tokens. A node that joins needs an operator's call, 'claimq
cluster join', or a join token, which lets so many nodes in until it expires.`,
		Example: "  claimq cluster token create --expires 1h > join.token",
		Args:    term.UnknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreateCommand(a), newTokenListCommand(a), newTokenRevokeCommand(a))
	return cmd
}

func newTokenCreateCommand(a *term.App) *cobra.Command {
	var f session.Flags
	var expires time.Duration
	var uses int
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a join token",
		Long: `Make a join token of 256 random bits and print it, once. The cluster is told its hash
alone. Put it into a file on the new node, and start that with --join and
--join-token-file. With --output json it is the secret of what is printed.`,
		Example: "  claimq cluster token create --expires 1h > join.token\n  claimq cluster token create --expires 24h --uses 3 > join.token",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return createToken(a, cmd, &f, expires, uses, rand.Reader)
		},
	}
	session.AddFlags(a, cmd, &f)
	cmd.Flags().DurationVar(&expires, "expires", time.Hour, "how long it lets nodes in, 30 days at most")
	cmd.Flags().IntVar(&uses, "uses", 1, "how many nodes it lets in, 1 to 32")
	term.OnlyExplicit(cmd)
	return cmd
}

// createToken makes a token of what random gives, and prints it.
func createToken(a *term.App, cmd *cobra.Command, f *session.Flags, expires time.Duration, uses int, random io.Reader) error {
	secret := make([]byte, tokenBytes)
	if _, err := io.ReadFull(random, secret); err != nil {
		return fmt.Errorf("make a join token: %w", err)
	}
	token := tokenPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
	hash := sha256.Sum256([]byte(token))
	body, err := json.Marshal(map[string]any{"token_sha256": hex.EncodeToString(hash[:]), "expires_in_ms": expires.Milliseconds(), "uses": uses})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return session.With(a, f, func(s session.Talk) error {
		var answer wire.JoinTokenMade
		// A repeat finds it made.
		r := client.Request{Method: http.MethodPost, Path: "/api/cluster/tokens", Body: body, Repeatable: true}
		if _, err := s.Do(cmd.Context(), r, "Whether it was made is not known: it was not printed, so make another one.", &answer); err != nil {
			return err
		}
		if f.Output == "json" {
			return json.NewEncoder(a.Stdout).Encode(madeToken{Success: true, Secret: token, Token: answer.Token})
		}
		if _, err := fmt.Fprintln(a.Stdout, token); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.Stderr, "token %s lets %s in until %s\n", term.Printable(answer.Token.ID), term.Count(answer.Token.Uses, "node"), answer.Token.ExpiresAt.Format(time.RFC3339))
		return err
	})
}

// madeToken is what is printed of a token that was made, as JSON.
type madeToken struct {
	Success bool           `json:"success"`
	Secret  string         `json:"secret"`
	Token   wire.JoinToken `json:"token"`
}

func newTokenListCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the join tokens that have not expired",
		Example: "  claimq cluster token list",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return session.With(a, &f, func(s session.Talk) error {
				var answer wire.JoinTokens
				shown, err := s.Call(cmd.Context(), client.Request{Method: http.MethodGet, Path: "/api/cluster/tokens"}, "", &answer)
				if err != nil || shown {
					return err
				}
				if len(answer.Tokens) == 0 {
					_, err = fmt.Fprintln(a.Stdout, "no join tokens: nodes join by an operator's call alone")
					return err
				}
				rows := [][]string{{"TOKEN", "USED", "EXPIRES (UTC)"}}
				for _, t := range answer.Tokens {
					rows = append(rows, []string{term.Cell(t.ID), fmt.Sprintf("%d/%d", t.Used, t.Uses), t.ExpiresAt.UTC().Format(time.DateTime)})
				}
				return a.Table(rows)
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	session.Within(cmd, session.LookTimeout)
	return cmd
}

func newTokenRevokeCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a join token",
		Long:    `Revoke a join token. Nodes that came by it stay members: 'claimq cluster remove' takes them out.`,
		Example: "  claimq cluster token revoke 13657558360c",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := json.Marshal(map[string]string{"id": args[0]})
			if err != nil {
				return fmt.Errorf("encode request: %w", err)
			}
			return session.With(a, &f, func(s session.Talk) error {
				var answer struct{}
				r := client.Request{Method: http.MethodPost, Path: "/api/cluster/tokens/revoke", Body: body}
				shown, err := s.Call(cmd.Context(), r, "See with 'claimq cluster token list' whether it was done.", &answer)
				if err != nil || shown {
					return err
				}
				_, err = fmt.Fprintf(a.Stdout, "token %s is revoked\n", term.Printable(args[0]))
				return err
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	return cmd
}
