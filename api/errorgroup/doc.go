// Package errorgroup groups failed tasks of one type whose errors differ only in numbers, ids and quoted parts.
//
// A group depends on type and error alone, so it is the same on every node of one version. Groups are not part of the
// state: another version may group differently.
package errorgroup
