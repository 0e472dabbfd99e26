package plants

// DroppedWrite returns the bug by which what counts tasks is shown to be able to fail:
// one submit in 29 is acknowledged and dropped. It is no part of All, as a run
// and the demo find it.
func DroppedWrite() Plant {
	return Plant{
		Name: "dropped-write", What: "one submit in 29 is acknowledged and dropped",
		edits: []edit{
			{"cluster/propose.go", "import (\n", "import (\n	\"sync/atomic\"\n"},
			{"cluster/propose.go", "	switch c := cmd.(type) {\n	case command.ClaimNext:\n", `	switch c := cmd.(type) {
	case command.Submit:
		if count := submits.Add(1); n.IsLeader() && count%29 == 0 {
			var p nodes.Proposed
			p.Index = n.fsm.Read(func(m *fsm.Machine) { p.Stamp = m.Stamp() })
			for i, t := range c.Tasks {
				p.Result.Submitted = append(p.Result.Submitted, fsm.Submitted{Created: true, Task: &fsm.Task{
					ID: 1<<52 + count*10_000 + uint64(i), Type: t.Type, Params: t.Params, Payload: t.Payload, Priority: t.Priority,
					MaxAttempts: max(t.MaxAttempts, 0), Key: t.Key, LeaseMS: t.LeaseMS, Status: fsm.StatusPending,
					CreatedAt: p.Stamp.T, UpdatedAt: p.Stamp.T,
				}})
			}
			return p, nil
		}
	case command.ClaimNext:
`},
			{"cluster/propose.go", "// Propose replicates cmd", "var submits atomic.Uint64\n\n// Propose replicates cmd"},
		},
	}
}
