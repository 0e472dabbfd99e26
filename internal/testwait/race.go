//go:build race

package testwait

const raced = true // by the race detector
