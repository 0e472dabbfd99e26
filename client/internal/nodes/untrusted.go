package nodes

import (
	"errors"
	"net"
)

// Untrusted reports whether err is a TLS alert by which the server refuses this client's certificate, or requires
// one. In TLS 1.3 it comes after the client's handshake, in place of an answer, but the server has not read the
// request.
func Untrusted(err error) bool {
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return false
	}
	switch alert.Err.Error() { // crypto/tls exports no values for them
	case "tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority", "tls: unsupported certificate",
		"tls: expired certificate", "tls: revoked certificate", "tls: unknown certificate":
		return true
	}
	return false
}
