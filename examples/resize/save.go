package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// save puts the picture in its place in one step, so a reader finds all of it or what was there before. A repeat does
// no harm. A killed attempt leaves at most a temporary file, which the next attempt removes.
func save(root *os.Root, name string, data []byte) error {
	name = path.Clean(name)
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	token, _ := strconv.ParseInt(os.Getenv("CLAIMQ_CLAIM_TOKEN"), 10, 64) // 0: run by hand
	prefix := fmt.Sprintf("%s.%s-", name, os.Getenv("CLAIMQ_TASK_ID"))
	if err := removeLeftovers(root, prefix, token); err != nil {
		return err
	}
	// No two claims have the same token, so no two attempts write to the same file. That is true even if one of them
	// does not know yet that its claim is over.
	temporary := fmt.Sprint(prefix, token, ".tmp")
	if err := write(root, temporary, data); err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return root.Rename(temporary, name)
}

// write makes a file durable. A completed task is on the disks of a quorum, so its picture should be on disk too.
func write(root *os.Root, name string, data []byte) error {
	f, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeLeftovers removes temporary files whose names begin with prefix, if they belong to claims older than token.
// Files of later claims are in use: then this attempt's own claim is over.
func removeLeftovers(root *os.Root, prefix string, token int64) error {
	files, err := fs.ReadDir(root.FS(), path.Dir(prefix))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := path.Join(path.Dir(prefix), file.Name())
		rest, mine := strings.CutPrefix(name, prefix)
		number, temporary := strings.CutSuffix(rest, ".tmp")
		older, err := strconv.ParseInt(number, 10, 64)
		if !mine || !temporary || err != nil || older >= token {
			continue
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
