// Package model shows what the model of package fsm, and a few tests of what the model does
// not know, can find: bugs that are planted in a special build.
package model
