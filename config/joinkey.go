package config

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// joinKeyBytesMin is the shortest join key: 32 characters of hex are 128 bits.
	joinKeyBytesMin = 32
	// joinKeyBytesMax is the longest join key, joinKeysMax the number of keys in a file (an exchange needs two).
	// joinKeyFileBytesMax bounds the file, including comments.
	joinKeyBytesMax     = 1024
	joinKeysMax         = 4
	joinKeyFileBytesMax = 64 << 10

	// joinKeyNone is the line for an empty key.
	joinKeyNone = "none"
)

// ReadJoinToken returns the join token in the file at path, without surrounding white space; "" if path is empty.
func ReadJoinToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read join_token_file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("join_token_file %s: it must hold one line", path)
	}
	return token, nil
}

// ReadJoinKeys returns the join keys in the file at path, in order; nil if path is empty. Each line is a key without
// surrounding white space; empty lines and lines that begin with # are ignored. A line with the word none is an empty
// key. Errors never quote the file.
func ReadJoinKeys(path string) ([][]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readShort(path)
	if err != nil {
		return nil, fmt.Errorf("read join_key_file: %w", err)
	}
	var keys [][]byte
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		key := strings.TrimSpace(line)
		switch first, twice := seen[key]; {
		case key == "" || key[0] == '#':
			continue
		case twice:
			return nil, fmt.Errorf("join key file %s: lines %d and %d are the same", path, first, number)
		case key != joinKeyNone && (len(key) < joinKeyBytesMin || len(key) > joinKeyBytesMax):
			return nil, fmt.Errorf("join key file %s: line %d has %d characters: a key has from %d to %d, and the word %s stands for no key", path, number, len(key), joinKeyBytesMin, joinKeyBytesMax, joinKeyNone)
		case len(keys) == joinKeysMax:
			return nil, fmt.Errorf("join key file %s: it has more than %d keys", path, joinKeysMax)
		}
		seen[key] = number
		if key == joinKeyNone {
			key = ""
		}
		keys = append(keys, []byte(key))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("join key file %s: it must have a line of at least %d characters", path, joinKeyBytesMin)
	}
	return keys, nil
}

// readShort returns the content of a file of at most joinKeyFileBytesMax.
func readShort(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, joinKeyFileBytesMax+1))
	if err == nil && len(b) > joinKeyFileBytesMax {
		err = fmt.Errorf("%s is larger than %d bytes", path, joinKeyFileBytesMax)
	}
	return string(b), err
}
