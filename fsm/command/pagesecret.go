package command

import (
	"github.com/claimq/claimq/fsm/wire"
)

// SetPageSecret gives the cluster the secret by which its nodes know who has logged in by
// the page. One that is there stays: Repeated. CodeInvalidRequest if it is of another length.
type SetPageSecret struct {
	Secret []byte // PageSecretBytes, random
}

func (SetPageSecret) kind() Kind { return KindSetPageSecret }

func (SetPageSecret) about() About { return About{} }

// PageSecretBytes is the length of the page's secret.
const PageSecretBytes = 32

// appendBody appends
//
//	message SetPageSecret {
//	  bytes secret = 1;  // 32 random bytes
//	}
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
