package keyring

import (
	"strings"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// Challenge is what a 401 says is wanted.
const Challenge = `Bearer realm="claimq"`

// Differ is the refusal of a request that one node lets in and another
// does not.
func Differ(text string) *refuse.Refusal {
	return refuse.New(wire.CodeUnauthorized, text+": the keys of the nodes differ",
		"Nothing was done: give all nodes the same keys and reload them, claimq key reload with each --endpoint")
}

// Unauthorized refuses who has shown no key that is known.
func Unauthorized(text string) *refuse.Refusal {
	return refuse.New(wire.CodeUnauthorized, text, "Send a key that this server knows, as X-API-Key: KEY or Authorization: Bearer KEY")
}

// NoRole names the role that a call needs.
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
