// Package errorgroup groups failed tasks of one type whose errors differ only in numbers,
// ids and quoted parts.
//
// Apply decides by these groups when an action checks its filter again, and users keep
// group ids. So a group depends on type and error alone, and changing the rules needs a new
// feature level.
package errorgroup
