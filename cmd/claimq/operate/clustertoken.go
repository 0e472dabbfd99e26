package operate

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

func newClusterTokenCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke join tokens",
		Long: `Make, list and revoke join tokens. A new node needs either an operator who calls
'claimq cluster join' or a join token. A token admits a limited number of nodes until
it expires.`,
		Example: "  claimq cluster token create --expires 1h > join.token",
	}, newTokenCreateCommand(a), newTokenListCommand(a), newTokenRevokeCommand(a))
}

func newTokenCreateCommand(a *term.App) *cobra.Command {
	var expires time.Duration
	var uses int
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a join token",
		Long: `Make a join token of 256 random bits and print it once. The cluster only stores its
hash. Put the token into a file on the new node and start that node with --join and
--join-token-file. With --output json the field secret has the token.`,
		Example: "  claimq cluster token create --expires 1h > join.token\n  claimq cluster token create --expires 24h --uses 3 > join.token",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) { return createToken(a, cmd, expires, uses) })
	term.DurationVar(cmd.Flags(), &expires, "expires", time.Hour, "how long it admits nodes, at most 30 days")
	cmd.Flags().IntVar(&uses, "uses", 1, "how many nodes it admits, 1 to 32")
	term.OnlyExplicit(cmd)
	return cmd
}

// createToken makes a join token and prints it.
func createToken(a *term.App, cmd *cobra.Command, expires time.Duration, uses int) (session.Act, error) {
	token, hash := newSecret("claimqjoin_")
	body := map[string]any{"token_sha256": hash, "expires_in_ms": expires.Milliseconds(), "uses": uses}
	r, err := session.Post("/api/cluster/tokens", body, "Whether it was made is not known: it was not printed, so make another one.")
	return func(s session.Talk) error {
		var answer wire.JoinTokenMade
		if _, err := s.Do(cmd.Context(), r, &answer); err != nil { // repeating it finds the same token
			return err
		}
		if s.Flags.Output == "json" {
			return term.ShowJSON(a.Stdout, madeToken{Success: true, Secret: token, Token: answer.Token})
		}
		if err := a.Sayf("%s", token); err != nil {
			return err
		}
		return a.Notef("token %s lets %s in until %s", term.Printable(answer.Token.ID), term.Count(answer.Token.Uses, "node"), answer.Token.ExpiresAt.Format(time.RFC3339))
	}, err
}

// madeToken is a new token as JSON.
type madeToken struct {
	Success bool           `json:"success"`
	Secret  string         `json:"secret"`
	Token   wire.JoinToken `json:"token"`
}

func newTokenListCommand(a *term.App) *cobra.Command {
	return session.Look(a, &cobra.Command{
		Use:     "list",
		Short:   "List the join tokens that have not expired",
		Example: "  claimq cluster token list",
	}, session.At("/api/cluster/tokens"), func(answer *wire.JoinTokens) error {
		if len(answer.Tokens) == 0 {
			return a.Sayf("no join tokens: nodes join by an operator's call alone")
		}
		rows := [][]string{{"TOKEN", "USED", "EXPIRES (UTC)"}}
		for _, t := range answer.Tokens {
			rows = append(rows, []string{term.Cell(t.ID), fmt.Sprintf("%d/%d", t.Used, t.Uses), t.ExpiresAt.UTC().Format(time.DateTime)})
		}
		return a.Table(rows)
	})
}

func newTokenRevokeCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a join token",
		Long: `Revoke a join token. Nodes that joined with it stay members; 'claimq cluster remove'
removes them.`,
		Example: "  claimq cluster token revoke 13657558360c",
	}, func(args []string) (session.Request, error) {
		r, err := session.Post("/api/cluster/tokens/revoke", map[string]string{"id": args[0]}, "See with 'claimq cluster token list' whether it was done.")
		return r.Once(), err
	}, func(args []string, _ *struct{}) error { return a.Sayf("token %s is revoked", term.Printable(args[0])) })
}
