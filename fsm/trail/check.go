package trail

// Check returns what is wrong with the trail, "" if nothing is: what is saved of it is what
// entries could have told, and what is derived is as Index would make it. It is for tests,
// as it goes through all events.
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

// Chunks returns the chunks, the oldest first. They are the log's own: only tests change them.
func (t *Log) Chunks() []*Chunk { return t.chunks }
