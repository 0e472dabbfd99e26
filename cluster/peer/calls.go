package peer

import "encoding/json"

// The calls that nodes without membership may make: those for joining, and a node's question
// about itself, because it may have been removed. Bodies are JSON.
const (
	CallMeet     = "meet"     // nodes of one list meet
	CallJoin     = "join"     // a node asks to become a member
	CallWho      = "who"      // → whoAnswer
	CallAdmitted = "admitted" // admission → {}; for a node without a cluster
	CallStanding = "standing" // standingQuestion → standingAnswer
)

// isOpenCall reports whether a call is answered to any node that completed the handshake:
// the calls for joining, and a node's question about itself, because it may have been
// removed. All others are answered only to members.
func isOpenCall(call string) bool { return isForAnyNode(call) || call == CallStanding }

// isForAnyNode reports whether a call is addressed to any node at an address. All others are
// addressed to the member that is known to be there.
func isForAnyNode(call string) bool {
	switch call {
	case CallMeet, CallJoin, CallWho, CallAdmitted:
		return true
	}
	return false
}

// QuestionError says what is wrong with a question, which the asker must change. It is
// answered with status 400.
type QuestionError string

// Error returns the text.
func (e QuestionError) Error() string { return string(e) }

// ReadQuestion decodes the body of a call. Errors: a QuestionError.
func ReadQuestion[T any](body []byte) (q T, err error) {
	if err := json.Unmarshal(body, &q); err != nil {
		return q, QuestionError("the question is malformed: " + err.Error())
	}
	return q, nil
}
