package fsm

// locate returns the slots in ready of the listed types that there are.
func (m *Machine) locate(types []string) []int32 {
	list := m.answers.commands.ListOf(types)
	if list == nil {
		return m.appendSlots(nil, types)
	}
	if !list.Located || list.AsOf != m.typesChanged {
		list.Slots = m.appendSlots(list.Slots[:0], types)
		list.Located, list.AsOf = true, m.typesChanged
	}
	return list.Slots
}

func (m *derived) appendSlots(slots []int32, types []string) []int32 {
	for _, name := range types {
		if ts := m.types[name]; ts != nil {
			slots = append(slots, ts.Slot())
		}
	}
	return slots
}
