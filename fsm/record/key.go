package record

// KeyName returns the name of the key in the indexes.
func KeyName(taskType, key string, ofType bool) string {
	if !ofType {
		return key
	}
	return taskType + keyMark + key
}

// keyMark separates type and key in the name of a type's own key. No key contains it, as it
// is a control character.
const keyMark = "\x00"

// KeyName returns the name of the task's key in the indexes, or "".
func (t *Task) KeyName() string {
	if t.Key == "" {
		return ""
	}
	return KeyName(t.Type, t.Key, t.Opts().KeyOfType)
}

// KeyName returns the name of the key that stays taken, or "".
func (g *Gone) KeyName() string {
	if g.Key == "" {
		return ""
	}
	return KeyName(g.Type, g.Key, g.KeyOfType)
}

// HoldsKey reports whether the task keeps its key taken.
func HoldsKey(t *Task) bool {
	return t.Key != "" && !(t.Opts().UniqueActive && t.Status.Ended())
}
