package keyring

import "strings"

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
