// Package jsonout appends JSON to a buffer by hand, without reflection: strings, times,
// numbers, and what bounds a text. It owns how a value is written, and knows no task and no
// call. Every function returns the buffer that it was given, longer; it allocates nothing
// else, and what it appends is valid JSON in UTF-8 whatever it is given.
package jsonout
