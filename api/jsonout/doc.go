// Package jsonout appends JSON to a buffer without reflection: strings, times, numbers, and shortened texts. It knows
// no tasks and no calls. Every function returns the extended buffer, allocates nothing else, and appends valid JSON
// in UTF-8 whatever its input is.
package jsonout
