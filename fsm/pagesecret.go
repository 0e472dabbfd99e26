package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
)

// PageSecret returns the secret by which nodes know who has logged in by the page, nil if
// there is none yet. No backup has it, and a restore leaves none. It is never changed.
func (m *Machine) PageSecret() []byte { return m.header.PageSecret }

func (m *Machine) setPageSecret(c command.SetPageSecret) Result {
	switch {
	case len(c.Secret) != command.PageSecretBytes:
		return Result{Code: CodeInvalidRequest}
	case m.header.PageSecret != nil:
		return Result{Repeated: true}
	}
	m.header.PageSecret = slices.Clone(c.Secret)
	return Result{}
}
