package api

import "strings"

// role is what an API key may do: it is the place of its bit in a set of roles.
type role uint8

const (
	roleNone role = iota // of a request: the server is open, so it may do everything
	roleReader
	roleProducer
	roleWorker
	roleOperator
)

var roleNames = [...]string{
	roleReader: "reader", roleProducer: "producer", roleWorker: "worker", roleOperator: "operator",
}

const rolesAllowed = "reader, producer, worker or operator"

func parseRole(name string) (role, bool) {
	for r := roleReader; r <= roleOperator; r++ {
		if roleNames[r] == name {
			return r, true
		}
	}
	return roleNone, false
}

// roles is a set of roles.
type roles uint8

const (
	// anybody needs no key at all.
	anybody   roles = 1 << roleNone
	producers roles = 1<<roleProducer | 1<<roleOperator
	workers   roles = 1<<roleWorker | 1<<roleOperator
	operators roles = 1 << roleOperator
	everyRole roles = 1<<roleReader | producers | workers
)

func (rs roles) has(r role) bool { return rs&(1<<r) != 0 }

// names are those of the roles, from the least to the most.
func (rs roles) names() []string {
	var names []string
	for r := roleReader; r <= roleOperator; r++ {
		if rs.has(r) {
			names = append(names, roleNames[r])
		}
	}
	return names
}

// least names the roles that a refusal says are needed: the operator, who may
// do everything, only where nobody else may.
func (rs roles) least() string {
	if rs == operators {
		return roleNames[roleOperator]
	}
	var names []string
	for r := roleReader; r < roleOperator; r++ {
		if rs.has(r) {
			names = append(names, roleNames[r])
		}
	}
	return strings.Join(names, " or ")
}
