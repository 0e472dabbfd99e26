package trail

// Check returns what is wrong with the trail, or "": it verifies that entries could have
// produced the saved events, and that the derived data is as Index would compute it. It is for
// tests, because it reads all events.
func (t *Log) Check(most Limits) (problem string) {
	read := Log{Header: t.Header, ChunkBytes: t.ChunkBytes}
	for i, c := range t.chunks {
		if i > 0 && c.Start != t.chunks[i-1].End() {
			return "a chunk does not begin where the one before ends"
		}
		read.Load(&Chunk{Saved: c.Saved})
	}
	if problem := read.Index(most); problem != "" {
		return problem
	}
	for i, c := range read.chunks {
		if was := t.chunks[i]; was.newest != c.newest || was.newestT != c.newestT {
			return "a chunk's newest event is another"
		}
	}
	if len(read.last.pages) != len(t.last.pages) {
		return "tasks are known of which there is no event"
	}
	for number, p := range read.last.pages {
		if was := t.last.pages[number]; was == nil || *was != *p {
			return "a task's newest event is another"
		}
	}
	return ""
}

// Chunks returns the log's own chunks, oldest first. Only tests change them.
func (t *Log) Chunks() []*Chunk { return t.chunks }
