package record

// KeyName returns the name by which the indexes know the key.
func KeyName(taskType, key string, ofType bool) string {
	if !ofType {
		return key
	}
	return taskType + keyMark + key
}

// keyMark parts type and key in the name of a key of a type. No key has it, as it is
// a control character.
const keyMark = "\x00"

// KeyName returns the name by which the task's key is known, "" if it has none.
func (t *Task) KeyName() string {
	if t.Key == "" {
		return ""
	}
	return KeyName(t.Type, t.Key, t.Opts().KeyOfType)
}

// KeyName is that of the key as long as what is remembered keeps it taken.
func (g *Gone) KeyName() string {
	if g.Key == "" {
		return ""
	}
	return KeyName(g.Type, g.Key, g.KeyOfType)
}

// HoldsKey reports whether the task's key is taken by it.
func HoldsKey(t *Task) bool {
	return t.Key != "" && !(t.Opts().UniqueActive && t.Status.Ended())
}
