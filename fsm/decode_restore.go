package fsm

import "math"

func decodeRestoreBegin(r *fieldReader) (c RestoreBegin) {
	for r.next() {
		switch r.num {
		case 1:
			c.Bytes = r.uint(math.MaxUint64)
		default:
			r.unknown()
		}
	}
	return c
}

func decodeRestoreChunk(r *fieldReader) (c RestoreChunk) {
	for r.next() {
		switch r.num {
		case 1:
			c.Begin = r.uint(math.MaxUint64)
		case 2:
			c.Offset = r.uint(math.MaxUint64)
		case 3:
			c.Data = r.bytes()
		default:
			r.unknown()
		}
	}
	return c
}

func decodeRestoreEnd(r *fieldReader) (c RestoreEnd) {
	for r.next() {
		switch r.num {
		case 1:
			c.Begin = r.uint(math.MaxUint64)
		default:
			r.unknown()
		}
	}
	return c
}
