package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"
)

// lockTimeout bounds the wait for another process's transaction.
const lockTimeout = 30 * time.Second

// errFenced is returned when a later claim has written to the row.
var errFenced = errors.New("the database refused the write")

// These are the states of a mail.
const (
	stateSending = "sending" // it may have been sent
	stateSent    = "sent"    // it has been sent
)

// row is a mail's row in the database.
type row struct {
	// Fence is the token of the newest claim that has written.
	Fence int64  `json:"fence"`
	State string `json:"state"`
}

// book is the database: a file that several processes write to, one transaction at a time. With the SQL in README.md
// a database server does the same.
type book struct{ path string }

// begin records that the holder of the token is about to send the mail, unless it was sent. It returns the previous
// row. From then on all older tokens are refused.
func (b book) begin(key string, token int64) (before row, err error) {
	err = b.write(key, token, func(r *row) {
		before = *r
		if r.State != stateSent {
			*r = row{Fence: token, State: stateSending}
		}
	})
	return before, err
}

// finish records that the mail was sent.
func (b book) finish(key string, token int64) error {
	return b.write(key, token, func(r *row) { *r = row{Fence: token, State: stateSent} })
}

var rows = []byte("mails")

// write changes a row, unless a newer token has changed it before. The check and the write are one transaction.
func (b book) write(key string, token int64, change func(*row)) error {
	db, err := bbolt.Open(b.path, 0o600, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return fmt.Errorf("open %s: %w", b.path, err)
	}
	defer db.Close()
	return db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(rows)
		if err != nil {
			return err
		}
		var r row
		if value := bucket.Get([]byte(key)); value != nil {
			if err := json.Unmarshal(value, &r); err != nil {
				return fmt.Errorf("decode row %s: %w", key, err)
			}
		}
		if r.Fence > token {
			return fmt.Errorf("%w: token %d has written since, %d is older", errFenced, r.Fence, token)
		}
		change(&r)
		value, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return bucket.Put([]byte(key), value)
	})
}

func (b book) print(out io.Writer) error {
	db, err := bbolt.Open(b.path, 0o600, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", b.path, err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(rows)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(key, value []byte) error {
			_, err := fmt.Fprintf(out, "%s %s\n", key, value)
			return err
		})
	})
}
