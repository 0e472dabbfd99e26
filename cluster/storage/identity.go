package storage

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/claimq/claimq/cluster/nodekey"
	"github.com/claimq/claimq/fsm"
)

// IdentityFile is the name of the file that holds the identity.
const IdentityFile = "identity.json"

// formatOf returns the format of the folder of a node whose cluster has reached the feature
// level. Each level has its own, so that a binary that could not read the log does not start to.
func formatOf(level uint32) int { return fsm.Format + int(max(level, 1)-1) }

// Identity says which node a data folder belongs to. It is written before anything else in
// the folder except the node's key, and stays when addresses change.
type Identity struct {
	NodeID    string    `json:"node_id"`    // the operator's name for the node
	UUID      string    `json:"uuid"`       // the ServerID of Raft: nodekey.UUID of the key; a wiped folder gets a new one
	ClusterID string    `json:"cluster_id"` // "" until the node has met its cluster; then fixed
	Format    int       `json:"format"`     // version of the folder's files
	CreatedAt time.Time `json:"created_at"` // by the node's wall clock; for humans
	// StoresCreated is set once the log exists: from then on its absence is a loss.
	StoresCreated bool `json:"stores_created"`
	// Introducers are the members as reported by the node that admitted this one. They
	// count until its own log shows it as a member.
	Introducers []Introducer `json:"introducers,omitempty"`
	// Start is the latest start of the node over this folder.
	Start Start `json:"start,omitzero"`

	// CRC is the CRC32C of this struct's JSON with CRC 0, because a flipped bit in UUID
	// would turn one member into two.
	CRC uint32 `json:"crc32c"`
}

// Introducer is a member of the cluster, as reported to a node that has no log yet.
type Introducer struct {
	UUID     string `json:"uuid"`
	PeerAddr string `json:"peer_addr"`
}

func newIdentity(nodeID string, key ed25519.PublicKey) Identity {
	return Identity{
		NodeID:    nodeID,
		UUID:      nodekey.UUID(key),
		Format:    fsm.Format,
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
}

func (id Identity) checksum() (uint32, error) {
	id.CRC = 0
	b, err := json.Marshal(id)
	if err != nil {
		return 0, err
	}
	return crc32.Checksum(b, castagnoli()), nil
}

// ReadIdentity returns the identity in dir; ok is false if it has none.
func ReadIdentity(dir string) (id Identity, ok bool, err error) {
	path := filepath.Join(dir, IdentityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, DirError(dir, err)
	}
	id, err = parseIdentity(b)
	if 0 < id.Format && id.Format < fsm.Format {
		return Identity{}, false, fmt.Errorf("%w: %s: %w: format %d, this one has %d: start with an empty folder",
			ErrFormatMismatch, dir, fsm.ErrDevelopment, id.Format, fsm.Format)
	}
	if err != nil {
		return Identity{}, false, corruptIdentity(path, err.Error())
	}
	return id, true, nil
}

func parseIdentity(b []byte) (id Identity, err error) {
	if err := json.Unmarshal(b, &id); err != nil {
		return Identity{}, err
	}
	crc, err := id.checksum()
	if err != nil {
		return id, err
	}
	if crc != id.CRC {
		return id, errors.New("checksum mismatch")
	}
	return id, nil
}

// writeIdentity replaces the identity in dir. When it returns nil, the new one is on disk;
// a crash leaves the old or the new one.
func writeIdentity(dir string, id Identity) error {
	crc, err := id.checksum()
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	id.CRC = crc
	b, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	path := filepath.Join(dir, IdentityFile)
	if err := reserveOf(dir).replace(path, append(b, '\n')); err != nil {
		return storageError(dir, "write "+IdentityFile, err)
	}
	return nil
}

// check returns an error if the folder at dir, with identity id, must not be used by this
// binary as node nodeID.
func (id Identity) check(dir, nodeID string) error {
	if id.NodeID != nodeID {
		return fmt.Errorf("%w: %s was made by node %q, not %q: start it with --node-id %s, or give node %q another folder",
			ErrNodeIDMismatch, dir, id.NodeID, nodeID, id.NodeID, nodeID)
	}
	if known := formatOf(fsm.FeatureLevel()); id.Format < fsm.Format || id.Format > known {
		return fmt.Errorf("%w: %s has format %d, this version of claimq knows up to %d: use the version that wrote it, or a newer one; "+
			"there is no way back after \"cluster upgrade --finalize\"", ErrFormatMismatch, dir, id.Format, known)
	}
	return nil
}

func corruptIdentity(path, what string) error {
	return fmt.Errorf("%w: %s: %s: %s", ErrCorruptIdentity, path, what, RejoinAdvice(filepath.Dir(path)))
}
