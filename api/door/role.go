package door

import (
	"strings"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// role is a role of an API key: its bit in Roles.
type role uint8

// The roles.
const (
	RoleNone role = iota // of a request to an open server, which may do everything
	RoleReader
	roleProducer
	roleWorker
	RoleOperator
)

// RoleNames are the names of the roles.
var RoleNames = [...]string{
	RoleReader: "reader", roleProducer: "producer", roleWorker: "worker", RoleOperator: "operator",
}

const rolesAllowed = "reader, producer, worker or operator"

func parseRole(name string) (role, bool) {
	for r := RoleReader; r <= RoleOperator; r++ {
		if RoleNames[r] == name {
			return r, true
		}
	}
	return RoleNone, false
}

// Roles is a set of roles.
type Roles uint8

// Sets of roles that may make calls.
const (
	// Anybody means that no key is needed.
	Anybody   Roles = 1 << RoleNone
	Producers Roles = 1<<roleProducer | 1<<RoleOperator
	Workers   Roles = 1<<roleWorker | 1<<RoleOperator
	Operators Roles = 1 << RoleOperator
	// Readers may only read.
	Readers   Roles = 1 << RoleReader
	EveryRole Roles = 1<<RoleReader | Producers | Workers
)

// Has reports whether the set contains r.
func (rs Roles) Has(r role) bool { return rs&(1<<r) != 0 }

// Names returns the names of the roles, from the least to the most powerful.
func (rs Roles) Names() []string {
	var names []string
	for r := RoleReader; r <= RoleOperator; r++ {
		if rs.Has(r) {
			names = append(names, RoleNames[r])
		}
	}
	return names
}

// least names the roles for a refusal. Operators, who may do everything, are named only if no other role suffices.
func (rs Roles) least() string {
	if rs == Operators {
		return RoleNames[RoleOperator]
	}
	var names []string
	for r := RoleReader; r < RoleOperator; r++ {
		if rs.Has(r) {
			names = append(names, RoleNames[r])
		}
	}
	return strings.Join(names, " or ")
}

// Failure is the reason why a caller was refused.
type Failure uint8

// The failures, in the order of FailureNames.
const (
	FailMissing Failure = iota
	FailMalformed
	FailUnknown
	FailDiffer
	FailExpired
	FailRole
	FailType
	failAddress
	FailOrigin
	FailIssuer
	failAudience
	failSignature
	failEarly
	failLifetime
	FailUnchecked
	FailCount
)

// FailureNames are the labels of the failures in metrics.
var FailureNames = [FailCount]string{
	"missing", "malformed", "unknown", "differ", "expired", "role", "task_type", "address", "origin",
	"issuer", "audience", "signature", "early", "lifetime", "unchecked",
}

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
