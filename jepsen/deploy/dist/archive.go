package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// file is one file of an archive.
type file struct {
	name    string // below the archive's one folder
	path    string // of its content; "": content
	content []byte
	mode    int64
}

// writeArchive writes a .tar.gz with the files in the folder of that name. Its bytes depend
// only on the arguments.
func writeArchive(path, folder string, files []file, at time.Time) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	archive := tar.NewWriter(zipped)
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for i := range files {
		if err = addFile(archive, folder, &files[i], at); err != nil {
			err = fmt.Errorf("pack %s: %w", files[i].name, err)
			break
		}
	}
	return errors.Join(err, archive.Close(), zipped.Close(), out.Close())
}

func addFile(archive *tar.Writer, folder string, f *file, at time.Time) error {
	content := f.content
	if f.path != "" {
		var err error
		if content, err = os.ReadFile(f.path); err != nil {
			return err
		}
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(content)), ModTime: at,
		Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
