//go:build !race

package testwait

const raced = false
