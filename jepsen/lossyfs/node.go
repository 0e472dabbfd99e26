package lossyfs

import (
	"context"
	"maps"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node answers FUSE's calls about an inode.
type node struct {
	fs.Inode
	disk  *disk
	inode *inode
}

// The supported calls. Others are answered as unsupported.
var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeAllocater = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
	_ fs.InodeEmbedder = (*node)(nil)
)

// change makes a change that creates no inode.
func (n *node) change(s step) syscall.Errno {
	_, errno := n.disk.change(n.inode, s)
	return errno
}

// child returns FUSE's inode for in.
func (n *node) child(ctx context.Context, in *inode, out *fuse.EntryOut) *fs.Inode {
	n.disk.mu.Lock()
	fill(in, &out.Attr)
	attr := fs.StableAttr{Mode: in.mode & syscall.S_IFMT, Ino: in.number}
	n.disk.mu.Unlock()
	return n.NewInode(ctx, &node{disk: n.disk, inode: in}, attr)
}

// fill describes the inode. The disk must be locked.
func fill(in *inode, out *fuse.Attr) {
	out.Ino, out.Mode, out.Nlink = in.number, in.mode, 1
	if !in.isDir() {
		out.Size = uint64(in.content.now.size)
		out.Blocks = uint64(len(in.content.now.pages)) * (pageSize / 512)
	}
	out.Blksize = pageSize
	out.SetTimes(&in.changed, &in.changed, &in.changed)
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	found, errno := n.disk.lookup(n.inode, name)
	if errno != 0 {
		return nil, errno
	}
	return n.child(ctx, found, out), 0
}

func (n *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	made, errno := n.disk.change(n.inode, step{kind: stepMake, name: name, mode: syscall.S_IFREG | mode&0o7777})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return n.child(ctx, made, out), nil, 0, 0
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	made, errno := n.disk.change(n.inode, step{kind: stepMake, name: name, mode: syscall.S_IFDIR | mode&0o7777})
	if errno != 0 {
		return nil, errno
	}
	return n.child(ctx, made, out), 0
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.change(step{kind: stepRemove, name: name})
}

func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.change(step{kind: stepRemove, name: name, dir: true})
}

// renameNoReplace is RENAME_NOREPLACE of renameat2.
const renameNoReplace = 1

func (n *node) Rename(_ context.Context, name string, newParent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	switch to, ok := newParent.(*node); {
	case !ok || to.inode != n.inode:
		return syscall.EXDEV
	case flags&^renameNoReplace != 0:
		return syscall.EINVAL
	}
	return n.change(step{kind: stepRename, name: name, to: newName, keep: flags == renameNoReplace})
}

func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var entries []fuse.DirEntry
	errno := n.disk.do(func() syscall.Errno {
		for _, name := range slices.Sorted(maps.Keys(n.inode.folder.now)) {
			in := n.inode.folder.now[name]
			entries = append(entries, fuse.DirEntry{Name: name, Ino: in.number, Mode: in.mode & syscall.S_IFMT})
		}
		return 0
	})
	if errno != 0 {
		return nil, errno
	}
	return fs.NewListDirStream(entries), 0
}

func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		return nil, 0, n.change(step{kind: stepResize})
	}
	return nil, 0, n.disk.do(func() syscall.Errno { return 0 })
}

func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	count, errno := n.disk.read(n.inode, dest, off)
	if errno != 0 {
		return nil, errno
	}
	return fuse.ReadResultData(dest[:count]), 0
}

func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := n.change(step{kind: stepWrite, at: off, data: data}); errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

// Fsync syncs files and folders. fdatasync also comes here, and must make the size durable
// like fsync.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return n.disk.sync(n.inode)
}

// keepSize is FALLOC_FL_KEEP_SIZE of fallocate.
const keepSize = 1

func (n *node) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	switch {
	case mode == keepSize:
		return n.disk.do(func() syscall.Errno { return 0 })
	case mode != 0:
		return syscall.EOPNOTSUPP
	case off+size > sizeMax:
		return syscall.ENOSPC
	}
	return n.change(step{kind: stepExtend, at: int64(off + size)})
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.disk.do(func() syscall.Errno {
		fill(n.inode, &out.Attr)
		return 0
	})
}

// Setattr changes size and mode, and ignores everything else.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if size > sizeMax {
			return syscall.EFBIG
		}
		if errno := n.change(step{kind: stepResize, at: int64(size)}); errno != 0 {
			return errno
		}
	}
	if mode, ok := in.GetMode(); ok {
		errno := n.disk.do(func() syscall.Errno {
			n.inode.mode = n.inode.mode&syscall.S_IFMT | mode&0o7777
			return 0
		})
		if errno != 0 {
			return errno
		}
	}
	return n.Getattr(ctx, f, out)
}

func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return n.disk.do(func() syscall.Errno {
		out.Bsize, out.Frsize, out.NameLen = pageSize, pageSize, nameMax
		out.Blocks = sizeMax / pageSize
		out.Bfree = uint64(n.disk.freeLocked())
		out.Bavail = out.Bfree
		out.Files, out.Ffree = 1<<20, 1<<20
		return 0
	})
}
