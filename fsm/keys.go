package fsm

import "github.com/claimq/claimq/fsm/record"

// An idempotency key is taken among all tasks, or, if its task has KeyOfType, among
// those of its type alone. The indexes know it by a name that tells the two apart.

// ByKey returns the task that has the key among all tasks, nil if none has. None
// has "".
func (m *Machine) ByKey(key string) *record.Task {
	if key == "" {
		return nil
	}
	return m.byKeyName(key)
}

// ByTypeKey returns the task of the type that has the key, among all tasks or among
// those of the type; nil if none has.
func (m *Machine) ByTypeKey(taskType, key string) *record.Task { return m.holder(taskType, key, true) }

// byKeyName returns the task whose key is known by the name, nil if none has it.
func (m *Machine) byKeyName(name string) (t *record.Task) {
	id := m.keys.Get(name, func(id uint64) bool {
		t = m.tasks.Get(id)
		return t.KeyName() == name
	})
	if id == 0 {
		return nil
	}
	return t
}

// holder returns the task because of which no other one of that type can have the
// key, nil if there is none. A key that is to be taken among those of the type alone
// (ofType) does not meet tasks of other types.
func (m *Machine) holder(taskType, key string, ofType bool) *record.Task {
	if key == "" {
		return nil
	}
	if t := m.byKeyName(key); t != nil && (!ofType || t.Type == taskType) {
		return t
	}
	return m.byKeyName(record.KeyName(taskType, key, true))
}

// goneHolder is holder of removed tasks that are remembered. It forgets one whose
// time has come, as the key is about to be given to another.
func (m *Machine) goneHolder(taskType, key string, ofType bool) (id uint64, g *record.Gone) {
	if key == "" {
		return 0, nil
	}
	if id, g = m.goneByKeyName(key); g != nil && (!ofType || g.Type == taskType) {
		return id, g
	}
	return m.goneByKeyName(record.KeyName(taskType, key, true))
}

func (m *Machine) goneByKeyName(name string) (id uint64, g *record.Gone) {
	if id, g = m.goneOf(name); g == nil {
		return 0, nil
	}
	if m.overGone(g) {
		m.forgetGone(id)
		return id, nil
	}
	return id, g
}

// goneOf returns what is remembered of a removed task whose key is known by the name,
// also if its time has come, nil if nothing is.
func (m *Machine) goneOf(name string) (id uint64, g *record.Gone) {
	id = m.goneKeys.Get(name, func(id uint64) bool {
		g = m.gone.Get(id)
		return g.KeyName() == name
	})
	if id == 0 {
		return 0, nil
	}
	return id, g
}
