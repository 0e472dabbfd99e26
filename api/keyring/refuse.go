package keyring

import (
	"strings"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// Challenge is the WWW-Authenticate header of a 401.
const Challenge = `Bearer realm="claimq"`

// Differ returns the refusal of a request that one node accepts and another does not.
func Differ(text string) *refuse.Refusal {
	return refuse.New(wire.CodeUnauthorized, text+": the keys of the nodes differ",
		"Nothing was done: give all nodes the same keys and reload them, claimq key reload with each --endpoint")
}

// Unauthorized returns the refusal of a request without a known key.
func Unauthorized(text string) *refuse.Refusal {
	return refuse.New(wire.CodeUnauthorized, text, "Send a key that this server knows, as X-API-Key: KEY or Authorization: Bearer KEY")
}

// NoRole returns a refusal that names the role that the call needs.
func NoRole(has Roles, call string, needs Roles) *refuse.Refusal {
	least := needs.least()
	names := has.Names()
	word := "role "
	if len(names) > 1 {
		word = "roles "
	}
	return &refuse.Refusal{
		Code: wire.CodeForbidden, Text: "The call " + call + " needs the role " + least + ", and this key has the " + word + strings.Join(names, " and "),
		Advice:  "Use a key with that role, or with the role operator",
		Details: `,"role":"` + least + `"`,
	}
}
