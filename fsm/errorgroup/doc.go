// Package errorgroup puts the errors of failed tasks into groups: those of one task type
// that differ in nothing but numbers, ids and quoted parts.
//
// What a group is decides in Apply, where an action looks at its filter once more, and
// people keep the ids of groups. So it depends on type and error alone, and a change of it
// is a matter of the feature level.
package errorgroup
