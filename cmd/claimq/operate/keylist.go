package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const (
	// keyPage is the number of keys per request.
	keyPage = 1_000
	// keyNodeTimeout bounds the time for one node.
	keyNodeTimeout = 5 * time.Second
)

func newKeyListCommand(a *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the API keys of all nodes, and when each was last used",
		Long: `Show the API keys that the nodes know: what each may do, when it expires, and when
(to the second) and from where it was last used. The command asks every node that
'claimq cluster status' shows, at its HTTP address. It only uses --endpoint to find
them. It shows no key and no hash.

Nodes keep uses in memory and forget them at a restart. If a node cannot be asked,
the command names it and exits with a code other than 0, because uses through that
node are missing.`,
		Example: "  claimq key list\n  claimq key list --output json | jq '.keys[] | select(.last_used_at == null).name'",
	}
	session.Acts(a, cmd, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		return func(s session.Talk) error { return listKeys(cmd.Context(), s, time.Now()) }, nil
	})
	session.Within(cmd, session.LookTimeout)
	return cmd
}

// ListedKeys is the JSON with the keys that the nodes know.
type ListedKeys struct {
	Nodes []keyNode   `json:"nodes"`
	Keys  []listedKey `json:"keys"`
}

// keyNode is one node that was asked.
type keyNode struct {
	NodeID string     `json:"node_id"`
	Since  *time.Time `json:"since"` // nil: asking it failed
	Error  string     `json:"error,omitempty"`

	keys []wire.Key
	err  error
}

// listedKey is a key, with the nodes that know it.
type listedKey struct {
	wire.Key
	Nodes   []string `json:"nodes"`
	Differs bool     `json:"differs"` // these nodes have different settings for it
}

func listKeys(ctx context.Context, s session.Talk, now time.Time) error {
	var c wire.Cluster
	if _, err := s.Do(ctx, session.Get("/api/cluster"), &c); err != nil {
		_, showErr := s.ShowJSON(nil, err)
		return errors.Join(err, showErr)
	}
	nodes := make([]keyNode, len(c.Nodes))
	var wait sync.WaitGroup
	for i, n := range c.Nodes {
		wait.Go(func() { nodes[i] = keysOf(ctx, s, n) })
	}
	wait.Wait()
	list := mergeKeys(nodes)
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.err)
	}
	if s.Flags.Output == "json" {
		return errors.Join(append(errs, term.ShowJSON(s.App.Stdout, list))...)
	}
	return errors.Join(append(errs, showKeys(s.App, list, now))...)
}

// keysOf asks one node for its keys.
func keysOf(ctx context.Context, s session.Talk, n wire.Node) keyNode {
	asked := keyNode{NodeID: n.NodeID}
	one := *s.Flags
	one.Endpoints, one.Timeout = []string{n.HTTPAddr}, min(one.Timeout, keyNodeTimeout)
	err := session.With(s.App, &one, func(s session.Talk) error {
		for after := ""; ; {
			query := url.Values{"limit": {strconv.Itoa(keyPage)}}
			if after != "" {
				query.Set("after", after)
			}
			var page wire.Keys
			if _, err := s.Do(ctx, session.Get("/api/keys?"+query.Encode()), &page); err != nil {
				return err
			}
			asked.Since = &page.Since
			asked.keys = append(asked.keys, page.Keys...)
			if page.Next == nil {
				return nil
			}
			after = *page.Next
		}
	})
	if err != nil {
		asked.Since, asked.keys, asked.Error = nil, nil, err.Error()
		asked.err = &term.CallError{About: "node " + term.Printable(n.NodeID) + " at " + term.Printable(n.HTTPAddr) + ": ", Err: err, Asked: one.Endpoints}
	}
	return asked
}

// mergeKeys merges the keys of the nodes. It keeps the latest use of each key.
func mergeKeys(nodes []keyNode) *ListedKeys {
	list := &ListedKeys{Nodes: nodes, Keys: []listedKey{}}
	at := make(map[string]int)
	for _, n := range nodes {
		for _, k := range n.keys {
			i, ok := at[k.Name]
			if !ok {
				i = len(list.Keys)
				at[k.Name] = i
				list.Keys = append(list.Keys, listedKey{Key: k})
			}
			list.Keys[i].add(n.NodeID, &k)
		}
	}
	slices.SortFunc(list.Keys, func(a, b listedKey) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// add adds a node's record of the key.
func (l *listedKey) add(node string, k *wire.Key) {
	l.Nodes = append(l.Nodes, node)
	l.Differs = l.Differs || !sameKey(&l.Key, k)
	if k.LastUsedAt != nil && (l.LastUsedAt == nil || k.LastUsedAt.After(*l.LastUsedAt)) {
		l.LastUsedAt, l.LastUsedFrom = k.LastUsedAt, k.LastUsedFrom
	}
}

// sameKey reports whether two nodes have the same settings for the key. It ignores when the key was used.
func sameKey(a, b *wire.Key) bool {
	text := func(k wire.Key) []byte {
		k.LastUsedAt, k.LastUsedFrom = nil, nil
		b, _ := json.Marshal(k) // encoding it cannot fail
		return b
	}
	return bytes.Equal(text(*a), text(*b))
}

func showKeys(a *term.App, list *ListedKeys, now time.Time) error {
	var since time.Time // of the node that started last
	answered := 0
	for _, n := range list.Nodes {
		if n.Since != nil {
			answered++
			if n.Since.After(since) {
				since = *n.Since
			}
		}
	}
	if len(list.Keys) == 0 {
		if answered == 0 {
			return nil // the errors say why
		}
		return a.Sayf("no API keys: anyone who reaches the nodes may do everything")
	}
	rows := [][]string{{"NAME", "ROLES", "TYPES", "RATE", "EXPIRES (UTC)", "ADDRESSES", "LAST USED (UTC)", "FROM", "NODES"}}
	unused := false
	for i := range list.Keys {
		k := &list.Keys[i]
		unused = unused || k.LastUsedAt == nil
		rows = append(rows, k.cells(answered, now))
	}
	if err := a.Table(rows, "NODES", "RATE", "ADDRESSES", "TYPES"); err != nil || !unused {
		return err
	}
	return a.Sayf("LAST USED -: not since %s, when the last of the nodes was started", since.UTC().Format(time.DateTime))
}

// cells returns the key's row. answered counts the nodes that answered.
func (l *listedKey) cells(answered int, now time.Time) []string {
	rate := "-"
	if l.RateLimitPerMinute > 0 {
		rate = fmt.Sprintf("%d/min", l.RateLimitPerMinute)
	}
	expires := "-"
	if l.ExpiresAt != nil {
		if expires = l.ExpiresAt.UTC().Format(time.DateTime); !now.Before(*l.ExpiresAt) {
			expires += " (over)"
		}
	}
	used, from := "-", ""
	if l.LastUsedAt != nil {
		used = l.LastUsedAt.UTC().Format(time.DateTime)
	}
	if l.LastUsedFrom != nil {
		from = *l.LastUsedFrom
	}
	nodes := ""
	if len(l.Nodes) < answered || l.Differs {
		nodes = strings.Join(l.Nodes, ",")
	}
	if l.Differs {
		nodes += " (they differ)"
	}
	texts := func(all []string) string { return term.Cell(strings.Join(all, ",")) }
	return []string{term.Cell(l.Name), texts(l.Roles), texts(l.TaskTypes), rate, expires, texts(l.Addresses), used, term.Cell(from), term.Cell(nodes)}
}
