package config

import (
	"fmt"
	"os"
	"strings"
)

// joinKeyBytesMin is the shortest join key: 32 characters of hex are 128 bits.
const joinKeyBytesMin = 32

// ReadJoinToken returns the join token in the file at path without the white space
// around it, "" if path is empty.
func ReadJoinToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("join token file %s: it must hold one line", path)
	}
	return token, nil
}

// ReadJoinKey returns the secret in the file at path without the white space
// around it, nil if path is empty.
func ReadJoinKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read join key: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if len(key) < joinKeyBytesMin || strings.ContainsAny(key, "\r\n") {
		return nil, fmt.Errorf("join key file %s: it must hold one line of at least %d characters", path, joinKeyBytesMin)
	}
	return []byte(key), nil
}
