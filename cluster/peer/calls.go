package peer

import "encoding/json"

// The calls that are answered to who is no member: what joining needs, and a node's
// question about itself, which may have been removed. Bodies are JSON.
const (
	CallMeet     = "meet"     // by which nodes meet
	CallJoin     = "join"     // by which a node asks to become a member
	CallWho      = "who"      // → whoAnswer
	CallAdmitted = "admitted" // admission → {}; a node without a cluster takes it
	CallStanding = "standing" // standingQuestion → standingAnswer
)

// isOpenCall reports whether a call is answered to whoever has shaken hands: what
// joining needs, and a node's question about itself, which may have been removed. All
// others are answered to members alone.
func isOpenCall(call string) bool { return isForWhoever(call) || call == CallStanding }

// isForWhoever reports whether a call is made of whoever is at an address. All others
// are made of the member alone that is known to be there.
func isForWhoever(call string) bool {
	switch call {
	case CallMeet, CallJoin, CallWho, CallAdmitted:
		return true
	}
	return false
}

// QuestionError is returned for a question that the asker has to put otherwise, with what is
// wrong with it. It is answered 400.
type QuestionError string

// Error says what is wrong.
func (e QuestionError) Error() string { return string(e) }

// ReadQuestion decodes the body of a call. Errors: a QuestionError.
func ReadQuestion[T any](body []byte) (q T, err error) {
	if err := json.Unmarshal(body, &q); err != nil {
		return q, QuestionError("the question is malformed: " + err.Error())
	}
	return q, nil
}
