package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/hashicorp/raft"
)

const (
	snapshotMagic         = "cqsnap1\n"
	snapshotHeadSize      = 16
	snapshotBodyFixedSize = 32
	// snapshotHeaderBytesMax bounds the header: about 10,000 nodes.
	snapshotHeaderBytesMax = 1 << 20
)

// encodeSnapshotHeader returns the header before the state in state.bin:
//
//	magic 8 | length of the body 4 | CRC32C of the body 4 |
//	body: version 8 | index 8 | term 8 | configuration's index 8 | configuration
//
// integers big-endian, the configuration as Raft encodes it. The state follows.
func encodeSnapshotHeader(meta *raft.SnapshotMeta) []byte {
	b := make([]byte, snapshotHeadSize, 256)
	b = binary.BigEndian.AppendUint64(b, uint64(meta.Version))
	b = binary.BigEndian.AppendUint64(b, meta.Index)
	b = binary.BigEndian.AppendUint64(b, meta.Term)
	b = binary.BigEndian.AppendUint64(b, meta.ConfigurationIndex)
	b = append(b, raft.EncodeConfiguration(meta.Configuration)...)
	body := b[snapshotHeadSize:]
	copy(b, snapshotMagic)
	binary.BigEndian.PutUint32(b[8:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[12:], crc32.Checksum(body, castagnoli()))
	return b
}

// readSnapshotHeader reads the header from r, leaves r at the state, and returns the
// header's size. It is an error if meta differs from it.
func readSnapshotHeader(r io.Reader, meta *raft.SnapshotMeta) (size int64, err error) {
	head := make([]byte, snapshotHeadSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, fmt.Errorf("header: %w", err)
	}
	length := binary.BigEndian.Uint32(head[8:])
	if string(head[:8]) != snapshotMagic || length < snapshotBodyFixedSize || length > snapshotHeaderBytesMax {
		return 0, errors.New("header: not a snapshot of claimq's")
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, fmt.Errorf("header: %w", err)
	}
	if crc32.Checksum(body, castagnoli()) != binary.BigEndian.Uint32(head[12:]) {
		return 0, errors.New("header: checksum mismatch")
	}
	// The body is intact, so this does not panic.
	configuration := raft.DecodeConfiguration(body[snapshotBodyFixedSize:])
	if binary.BigEndian.Uint64(body) != uint64(meta.Version) ||
		binary.BigEndian.Uint64(body[8:]) != meta.Index ||
		binary.BigEndian.Uint64(body[16:]) != meta.Term ||
		binary.BigEndian.Uint64(body[24:]) != meta.ConfigurationIndex ||
		!slices.Equal(configuration.Servers, meta.Configuration.Servers) {
		return 0, fmt.Errorf("%s says something else than the header of %s", snapshotMetaFile, snapshotDataFile)
	}
	return snapshotHeadSize + int64(length), nil
}
