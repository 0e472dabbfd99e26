package keyring

import "strings"

// role is what an API key may do: it is the place of its bit in a set of roles.
type role uint8

// The roles.
const (
	RoleNone role = iota // of a request: the server is open, so it may do everything
	RoleReader
	roleProducer
	roleWorker
	RoleOperator
)

// RoleNames are the words for the roles. It is never changed.
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

// Who may make which calls.
const (
	// Anybody needs no key at all.
	Anybody   Roles = 1 << RoleNone
	Producers Roles = 1<<roleProducer | 1<<RoleOperator
	Workers   Roles = 1<<roleWorker | 1<<RoleOperator
	Operators Roles = 1 << RoleOperator
	// Readers may only look.
	Readers   Roles = 1 << RoleReader
	EveryRole Roles = 1<<RoleReader | Producers | Workers
)

// Has reports whether r is one of them.
func (rs Roles) Has(r role) bool { return rs&(1<<r) != 0 }

// Names are those of the roles, from the least to the most.
func (rs Roles) Names() []string {
	var names []string
	for r := RoleReader; r <= RoleOperator; r++ {
		if rs.Has(r) {
			names = append(names, RoleNames[r])
		}
	}
	return names
}

// least names the roles that a refusal says are needed: the operator, who may
// do everything, only where nobody else may.
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
