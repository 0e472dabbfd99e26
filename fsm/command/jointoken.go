package command

import (
	"github.com/claimq/claimq/fsm/wire"
)

// SetJoinToken makes a join token that lives LifeMS from now, by T. Result.JoinToken
// is that token. One of the same hash that is there stays as it is: Repeated.
// CodeMembershipRefused if there are too many, or it is out of bounds.
type SetJoinToken struct {
	Hash   []byte // SHA-256 of the token
	LifeMS int64  // 1 to JoinTokenLifeMax
	Uses   int32  // 1 to JoinTokenUsesMax
	By     string // as in SetType
}

func (SetJoinToken) kind() Kind { return KindSetJoinToken }

func (SetJoinToken) about() About { return About{} }

// DeleteJoinToken revokes a join token. CodeMembershipRefused if there is none of
// that id.
type DeleteJoinToken struct {
	ID string // as JoinToken.ID
	By string // as in SetType
}

func (DeleteJoinToken) kind() Kind { return KindDeleteJoinToken }

func (DeleteJoinToken) about() About { return About{} }

// UseJoinToken counts that the node comes by the token, once for each UUID.
// CodeMembershipRefused if no such token lives, or others have used it up.
type UseJoinToken struct {
	Hash   []byte // SHA-256 of the token
	UUID   string
	NodeID string // for the trail
}

func (UseJoinToken) kind() Kind { return KindUseJoinToken }

func (UseJoinToken) about() About { return About{} }

// appendBody appends
//
//	message SetJoinToken {
//	  bytes hash = 1;     // SHA-256 of the token
//	  int64 life_ms = 2;
//	  sint32 uses = 3;    // nodes that may come by it
//	  string by = 4;      // name of the operator's key
//	}
func (c SetJoinToken) appendBody(b []byte) []byte {
	b = wire.PutBytes(b, 1, c.Hash)
	b = wire.PutInt(b, 2, c.LifeMS)
	b = wire.PutSint(b, 3, c.Uses)
	return wire.PutString(b, 4, c.By)
}

func (SetJoinToken) decode(r fieldReader) (Command, error) {
	var c SetJoinToken
	for r.Next() {
		switch r.Num {
		case 1:
			c.Hash = r.Bytes()
		case 2:
			c.LifeMS = r.Int64()
		case 3:
			c.Uses = r.Sint32()
		case 4:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message DeleteJoinToken {
//	  string id = 1;  // the first 12 digits of the hash in hex
//	  string by = 2;
//	}
func (c DeleteJoinToken) appendBody(b []byte) []byte {
	b = wire.PutString(b, 1, c.ID)
	return wire.PutString(b, 2, c.By)
}

func (DeleteJoinToken) decode(r fieldReader) (Command, error) {
	var c DeleteJoinToken
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.Text()
		case 2:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendBody appends
//
//	message UseJoinToken {
//	  bytes hash = 1;
//	  string uuid = 2;     // of the node that comes by it
//	  string node_id = 3;
//	}
func (c UseJoinToken) appendBody(b []byte) []byte {
	b = wire.PutBytes(b, 1, c.Hash)
	b = wire.PutString(b, 2, c.UUID)
	return wire.PutString(b, 3, c.NodeID)
}

func (UseJoinToken) decode(r fieldReader) (Command, error) {
	var c UseJoinToken
	for r.Next() {
		switch r.Num {
		case 1:
			c.Hash = r.Bytes()
		case 2:
			c.UUID = r.Text()
		case 3:
			c.NodeID = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
