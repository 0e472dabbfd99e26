package nodes

import (
	"errors"
	"net"
)

// Untrusted reports whether err is the server's word in TLS that it does not
// take this client's certificate, or wants one. In TLS 1.3 it comes when the
// client believes to be connected, in place of an answer; but whoever says it has
// read nothing of the request.
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
