package command

// SetPageSecret sets the secret with which all nodes verify logins to the page. An existing
// secret stays and the result is Repeated. CodeInvalidRequest if the length is wrong.
type SetPageSecret struct {
	Secret []byte // PageSecretBytes, random
}

func (SetPageSecret) kind() Kind { return KindSetPageSecret }

func (SetPageSecret) about() About { return About{} }

// PageSecretBytes is the length of the page's secret.
const PageSecretBytes = 32

// code goes through the fields of
//
//	message SetPageSecret {
//	  bytes secret = 1;  // 32 random bytes
//	}
func (c SetPageSecret) code(f fields) (Command, []byte, error) {
	f.Bytes(1, &c.Secret)
	return done(c, &f)
}
