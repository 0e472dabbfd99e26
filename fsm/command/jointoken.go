package command

// SetJoinToken makes a join token that lives LifeMS from now, by T. Result.JoinToken is the
// token. If one with the same hash exists, it stays as it is and the result is Repeated.
// CodeMembershipRefused if there are too many tokens or a field is out of bounds.
type SetJoinToken struct {
	Hash   []byte // SHA-256 of the token
	LifeMS int64  // 1 to JoinTokenLifeMax
	Uses   int32  // 1 to JoinTokenUsesMax
	By     string // as in SetType
}

func (SetJoinToken) kind() Kind { return KindSetJoinToken }

func (SetJoinToken) about() About { return About{} }

// DeleteJoinToken revokes a join token. CodeMembershipRefused if the id is unknown.
type DeleteJoinToken struct {
	ID string // as JoinToken.ID
	By string // as in SetType
}

func (DeleteJoinToken) kind() Kind { return KindDeleteJoinToken }

func (DeleteJoinToken) about() About { return About{} }

// UseJoinToken counts that a node joins with the token, once for each UUID.
// CodeMembershipRefused if the token does not exist, has expired or is used up.
type UseJoinToken struct {
	Hash   []byte // SHA-256 of the token
	UUID   string
	NodeID string // for the trail
}

func (UseJoinToken) kind() Kind { return KindUseJoinToken }

func (UseJoinToken) about() About { return About{} }

// code goes through the fields of
//
//	message SetJoinToken {
//	  bytes hash = 1;     // SHA-256 of the token
//	  int64 life_ms = 2;
//	  sint32 uses = 3;    // nodes that may come by it
//	  string by = 4;      // name of the operator's key
//	}
func (c SetJoinToken) code(f fields) (Command, []byte, error) {
	f.Bytes(1, &c.Hash)
	f.Int(2, &c.LifeMS)
	f.Sint(3, &c.Uses)
	f.Text(4, &c.By)
	return done(c, &f)
}

// code goes through the fields of
//
//	message DeleteJoinToken {
//	  string id = 1;  // the first 12 digits of the hash in hex
//	  string by = 2;
//	}
func (c DeleteJoinToken) code(f fields) (Command, []byte, error) {
	f.Text(1, &c.ID)
	f.Text(2, &c.By)
	return done(c, &f)
}

// code goes through the fields of
//
//	message UseJoinToken {
//	  bytes hash = 1;
//	  string uuid = 2;     // of the node that comes by it
//	  string node_id = 3;
//	}
func (c UseJoinToken) code(f fields) (Command, []byte, error) {
	f.Bytes(1, &c.Hash)
	f.Text(2, &c.UUID)
	f.Text(3, &c.NodeID)
	return done(c, &f)
}
