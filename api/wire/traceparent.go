package wire

import "bytes"

// traceparentBytes is the length of a traceparent of version 00:
//
//	00-<32 hex: trace id>-<16 hex: parent id>-<2 hex: flags>
const traceparentBytes = 2 + 1 + 32 + 1 + 16 + 1 + 2

// ValidTraceparent reports whether v is a W3C trace context of version 00
// (https://www.w3.org/TR/trace-context/): hex digits in lower case, neither id all zero.
func ValidTraceparent(v []byte) bool {
	const traceEnd, parentEnd = 35, 52
	if len(v) != traceparentBytes || v[0] != '0' || v[1] != '0' || v[2] != '-' || v[traceEnd] != '-' || v[parentEnd] != '-' {
		return false
	}
	trace, parent, flags := v[3:traceEnd], v[traceEnd+1:parentEnd], v[parentEnd+1:]
	return lowerHex(trace) && lowerHex(parent) && lowerHex(flags) && !zeros(trace) && !zeros(parent)
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(b []byte) bool { return len(bytes.Trim(b, "0")) == 0 }
