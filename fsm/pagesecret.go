package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/wire"
)

// SetPageSecret gives the cluster the secret by which its nodes know who has logged in by
// the page. One that is there stays: Repeated. CodeInvalidRequest if it is of another length.
type SetPageSecret struct {
	Secret []byte // PageSecretBytes, random
}

func (SetPageSecret) kind() kind                           { return kindSetPageSecret }
func (SetPageSecret) about() About                         { return About{} }
func (c SetPageSecret) applyTo(m *Machine) (Result, error) { return m.setPageSecret(c), nil }

// PageSecretBytes is the length of the page's secret.
const PageSecretBytes = 32

// PageSecret returns the secret by which nodes know who has logged in by the page, nil if
// there is none yet. No backup has it, and a restore leaves none. It is never changed.
func (m *Machine) PageSecret() []byte { return m.header.PageSecret }

func (m *Machine) setPageSecret(c SetPageSecret) Result {
	switch {
	case len(c.Secret) != PageSecretBytes:
		return Result{Code: CodeInvalidRequest}
	case m.header.PageSecret != nil:
		return Result{Repeated: true}
	}
	m.header.PageSecret = slices.Clone(c.Secret)
	return Result{}
}

func (c SetPageSecret) appendBody(b []byte) []byte { return wire.PutBytes(b, 1, c.Secret) }

func (SetPageSecret) decode(r fieldReader) (Command, error) {
	var c SetPageSecret
	for r.Next() {
		switch r.Num {
		case 1:
			c.Secret = r.Bytes()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
