package command

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
)

// SetNode records what the cluster knows of a node.
type SetNode struct{ Node record.NodeRecord }

func (SetNode) kind() Kind { return KindSetNode }

func (SetNode) about() About { return About{} }

// RemoveNode forgets a node.
type RemoveNode struct{ UUID string }

func (RemoveNode) kind() Kind { return KindRemoveNode }

func (RemoveNode) about() About { return About{} }

// SetLevel raises the feature level. A level that is not higher changes nothing.
type SetLevel struct {
	Level uint32
	By    string // as in SetType
	// Defaults are the server's defaults. They apply only to a cluster without a level,
	// because one that has data keeps its own.
	Defaults record.Defaults
	// Place is a lower bound for trail places and schedule versions from this entry on; 0
	// means none. A new cluster uses it to stay above the numbers of another cluster whose
	// backup it may restore.
	Place uint64
}

func (SetLevel) kind() Kind { return KindSetLevel }

func (SetLevel) about() About { return About{} }

// code reads or writes the fields of
//
//	message SetNode {
//	  NodeRecord node = 1;
//	}
func (c SetNode) code(f fields) (Command, fields) {
	if m, ok := f.Message(1, true); ok {
		c.Node.Code(&f.Fields)
		f.EndMessage(m)
	}
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message RemoveNode {
//	  string uuid = 1;
//	}
func (c RemoveNode) code(f fields) (Command, fields) {
	f.Text(1, &c.UUID)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message SetLevel {
//	  uint32 level = 1;
//	  string by = 2;              // name of the operator's key
//	  TypeSettings defaults = 3;  // the server's, if there is no level yet; without pause and limits
//	  uint64 place = 4;           // the least of the trail's places from then on
//	}
func (c SetLevel) code(f fields) (Command, fields) {
	f.Uint32(1, &c.Level)
	if f.Reading && c.Level > record.FeatureLevel { // beyond it the log may hold what this node cannot apply
		f.Refuse(fmt.Errorf("%w: feature level %d, this one knows %d", record.ErrUnknown, c.Level, record.FeatureLevel))
	}
	f.Text(2, &c.By)
	c.Defaults.Code(&f.Fields, 3)
	f.ID(4, &c.Place)
	return done(c, &f)
}

// SetJoinToken makes a join token that lives LifeMS from now, by T. Result.JoinToken is the
// token. If one with the same hash exists, it does not change, and the result is Repeated.
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

// code reads or writes the fields of
//
//	message SetJoinToken {
//	  bytes hash = 1;     // SHA-256 of the token
//	  int64 life_ms = 2;
//	  sint32 uses = 3;    // nodes that may come by it
//	  string by = 4;      // name of the operator's key
//	}
func (c SetJoinToken) code(f fields) (Command, fields) {
	f.Bytes(1, &c.Hash)
	f.Int(2, &c.LifeMS)
	f.Sint(3, &c.Uses)
	f.Text(4, &c.By)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message DeleteJoinToken {
//	  string id = 1;  // the first 12 digits of the hash in hex
//	  string by = 2;
//	}
func (c DeleteJoinToken) code(f fields) (Command, fields) {
	f.Text(1, &c.ID)
	f.Text(2, &c.By)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message UseJoinToken {
//	  bytes hash = 1;
//	  string uuid = 2;     // of the node that comes by it
//	  string node_id = 3;
//	}
func (c UseJoinToken) code(f fields) (Command, fields) {
	f.Bytes(1, &c.Hash)
	f.Text(2, &c.UUID)
	f.Text(3, &c.NodeID)
	return done(c, &f)
}

// SetPageSecret sets the secret with which all nodes verify logins to the page. An existing
// secret stays and the result is Repeated. CodeInvalidRequest if the length is wrong.
type SetPageSecret struct {
	Secret []byte // PageSecretBytes, random
}

func (SetPageSecret) kind() Kind { return KindSetPageSecret }

func (SetPageSecret) about() About { return About{} }

// PageSecretBytes is the length of the page's secret.
const PageSecretBytes = 32

// code reads or writes the fields of
//
//	message SetPageSecret {
//	  bytes secret = 1;  // 32 random bytes
//	}
func (c SetPageSecret) code(f fields) (Command, fields) {
	f.Bytes(1, &c.Secret)
	return done(c, &f)
}
