package snapshot

import (
	"bytes"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// Records that could not be read back are not written.
func TestChunkWriter_RefusesARecordTooLarge(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	cw := chunkWriter{w: &b}
	cw.add(record.KindTask, make([]byte, ChunkMax))
	cw.flush()
	if cw.err == nil || b.Len() > 0 {
		t.Fatalf("wrote %d bytes, error %v", b.Len(), cw.err)
	}
}
