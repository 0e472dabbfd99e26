package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds a test that runs processes.
const patience = 3 * time.Minute

// halves draws a picture whose left half has the first color and whose right half has the second.
func halves(width, height int, left, right color.Color) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			if x < width/2 {
				m.Set(x, y, left)
			} else {
				m.Set(x, y, right)
			}
		}
	}
	return m
}

func pngOf(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// asProgram in the environment makes the test's binary run as the program.
const asProgram = "CLAIMQ_EXAMPLE_RESIZE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// lab is a node with a client, a folder of pictures, and the claimq binary.
type lab struct {
	ctx    context.Context
	c      *client.Client
	url    string
	claimq string
	dir    string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	l := &lab{ctx: ctx, dir: t.TempDir()}
	var err error
	if l.claimq, err = procs.Build(ctx, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	nodes, err := procs.Start(ctx, procs.Config{Binary: l.claimq, Dir: t.TempDir(), Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	l.url = nodes.URLs()[0]
	if l.c, err = client.New(client.Config{Endpoints: nodes.URLs()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.c.Close() })
	return l
}

// work starts claimq work as in README.md, but the command first writes its pid to a file. It stops when the test
// ends.
func (l *lab) work(t *testing.T) {
	t.Helper()
	line := fmt.Sprintf(`echo $$ >%s/pid.$CLAIMQ_TASK_ID.$CLAIMQ_ATTEMPT; exec %s -dir %s`, l.dir, os.Args[0], l.dir)
	cmd := exec.Command(l.claimq, "work", "--type", "resize", "--concurrency", "2", "--endpoint", l.url, "--", "sh", "-c", line)
	var said bytes.Buffer
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr, cmd.SysProcAttr = &said, procs.ChildAttr()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("claimq work ended with %v:\n%s", err, said.String())
		}
	})
}

func (l *lab) submit(t *testing.T, p params) string {
	t.Helper()
	task, err := client.NewTask("resize", p)
	if err != nil {
		t.Fatal(err)
	}
	task.Backoff = &client.Backoff{Initial: time.Millisecond}
	id, err := l.c.Submit(l.ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A real claimq work makes pictures smaller. A broken picture fails at once and for good. If a command is killed in
// the middle of its picture, a second attempt does it again.
func TestResize(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	red, blue := color.RGBA{R: 220, A: 255}, color.RGBA{B: 220, A: 255}
	data := pngOf(t, halves(400, 300, red, blue))
	put(t, l.dir, "good.png", data)
	put(t, l.dir, "broken.png", data[:len(data)/2])
	pipe := filepath.Join(l.dir, "slow.png")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l.work(t)
	slow := l.submit(t, params{From: "slow.png", To: "small/slow.jpg", Width: 40})
	writing, err := os.OpenFile(pipe, os.O_WRONLY, 0) // opens when the command reads it
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	if _, err := writing.Write(data[:len(data)/2]); err != nil {
		t.Fatal(err)
	}

	good := l.submit(t, params{From: "good.png", To: "small/good.jpg", Width: 100})
	broken := l.submit(t, params{From: "broken.png", To: "small/broken.jpg", Width: 100})
	got, err := l.c.Wait(l.ctx, good)
	if err != nil || got.Status != client.StatusCompleted {
		t.Fatalf("the good picture's task is %+v (%v)", got, err)
	}
	var r result
	if err := json.Unmarshal(got.Result, &r); err != nil || r.Width != 100 || r.Height != 75 || r.Bytes == 0 {
		t.Errorf("the result is %s (%v)", got.Result, err)
	}
	checkHalves(t, filepath.Join(l.dir, "small/good.jpg"), 100, 75)
	if got, err = l.c.Wait(l.ctx, broken); err != nil || got.Status != client.StatusFailed || got.Attempts != 1 || !strings.Contains(got.Error, "resize: no attempt can help: broken.png: ") {
		t.Errorf("the broken picture's task is %+v (%v)", got, err)
	}

	// The pipe has been half read. Only the command dies, and the next one finds a file in the pipe's place.
	put(t, l.dir, "whole.png", data)
	if err := os.Rename(filepath.Join(l.dir, "whole.png"), pipe); err != nil {
		t.Fatal(err)
	}
	l.kill(t, slow)
	if got, err = l.c.Wait(l.ctx, slow); err != nil || got.Status != client.StatusCompleted || got.Attempts != 2 || got.Error != "signal: killed" {
		t.Errorf("the task whose command was killed is %+v (%v)", got, err)
	}
	checkHalves(t, filepath.Join(l.dir, "small/slow.jpg"), 40, 30)
	files, err := filepath.Glob(filepath.Join(l.dir, "small", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("there are %v (%v)", files, err)
	}
}

// kill kills the command of the task's first attempt.
func (l *lab) kill(t *testing.T, id string) {
	t.Helper()
	var pid int
	b, err := os.ReadFile(filepath.Join(l.dir, "pid."+id+".1"))
	if err == nil {
		_, err = fmt.Sscan(string(b), &pid)
	}
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("kill the command: %v", err)
	}
}

// checkHalves checks that the file is a picture of that size with a red and a blue half.
func checkHalves(t *testing.T, name string, width, height int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	m, err := jpeg.Decode(f)
	if err != nil || m.Bounds() != image.Rect(0, 0, width, height) {
		t.Errorf("%s: %v, %v", name, m, err)
		return
	}
	leftRed, _, _, _ := m.At(2, height/2).RGBA()
	_, _, rightBlue, _ := m.At(width-3, height/2).RGBA()
	if leftRed>>8 < 180 || rightBlue>>8 < 180 {
		t.Errorf("%s: the left is %v, the right is %v", name, m.At(2, height/2), m.At(width-3, height/2))
	}
}

// Each pixel is the average of its box, even if the sizes do not divide evenly. A small picture stays the same.
func TestShrink(t *testing.T) {
	t.Parallel()
	m := halves(4, 2, color.RGBA{R: 100, A: 255}, color.RGBA{R: 200, A: 255})
	m.Set(1, 1, color.RGBA{R: 20, G: 40, A: 255})
	got := shrink(m, 2)
	if got.Rect != image.Rect(0, 0, 2, 1) || got.RGBAAt(0, 0) != (color.RGBA{R: 80, G: 10, A: 255}) || got.RGBAAt(1, 0) != (color.RGBA{R: 200, A: 255}) {
		t.Errorf("4 x 2 to a width of 2: %v, %v, %v", got.Rect, got.RGBAAt(0, 0), got.RGBAAt(1, 0))
	}
	if got = shrink(m.SubImage(image.Rect(1, 1, 4, 2)), 2); got.Rect != image.Rect(0, 0, 2, 1) || got.RGBAAt(0, 0).G != 40 || got.RGBAAt(1, 0).R != 200 {
		t.Errorf("3 x 1 to a width of 2: %v, %v", got.Rect, got.Pix)
	}
	if got = shrink(m, 9); !bytes.Equal(got.Pix, m.Pix) {
		t.Errorf("made larger: %v", got.Rect)
	}
}

// Failures that a later attempt cannot fix are distinguished from those that it may fix.
func TestRun_failures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "good.png", pngOf(t, halves(8, 8, color.Black, color.White)))
	put(t, dir, "text.png", []byte("This is no picture."))
	huge := pngOf(t, halves(1, 1, color.Black, color.White))
	copy(huge[16:24], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // the header claims this size
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	put(t, dir, "huge.png", huge)
	put(t, dir, "file", nil)
	for name, test := range map[string]struct {
		params string
		never  bool
		text   string
	}{
		"no JSON":         {`{`, true, `unexpected end of JSON`},
		"no width":        {`{"from":"good.png","to":"a.png"}`, true, `width is 0`},
		"same":            {`{"from":"good.png","to":"good.png","width":2}`, true, `are the same`},
		"same in a way":   {`{"from":"good.png","to":"x/.././good.png","width":2}`, true, `are the same`},
		"outside":         {`{"from":"../good.png","to":"a.png","width":2}`, true, `names in the folder`},
		"to the outside":  {`{"from":"good.png","to":"/tmp/a.png","width":2}`, true, `names in the folder`},
		"no picture":      {`{"from":"text.png","to":"a.png","width":2}`, true, `unknown format`},
		"huge":            {`{"from":"huge.png","to":"a.png","width":2}`, true, `65535 x 65535`},
		"unknown format":  {`{"from":"good.png","to":"a.bmp","width":2}`, true, `does not end`},
		"not there":       {`{"from":"later.png","to":"a.png","width":2}`, false, `no such file`},
		"cannot be saved": {`{"from":"good.png","to":"file/a.png","width":2}`, false, `file exists`},
	} {
		var out bytes.Buffer
		if err := run(dir, strings.NewReader(test.params), &out); err == nil || errors.Is(err, errNever) != test.never || !strings.Contains(err.Error(), test.text) || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q", name, err, out.String())
		}
	}
}

// An attempt removes the leftovers of killed attempts of its task and no other files. It also keeps those of a later
// attempt, because its own claim may be over.
func TestSave_removesLeftovers(t *testing.T) {
	t.Setenv("CLAIMQ_TASK_ID", "7")
	t.Setenv("CLAIMQ_CLAIM_TOKEN", "12")
	dir := t.TempDir()
	for _, name := range []string{"a.png.7-9.tmp", "a.png.77-10.tmp", "b.png.7-11.tmp", "a.png.7-13.tmp", "a.png.7-x.tmp"} {
		put(t, dir, name, nil)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, data := range []string{"first", "again"} {
		if err := save(root, "./a.png", []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := root.ReadFile("a.png"); err != nil || string(got) != data {
			t.Errorf("%q, %v", got, err)
		}
	}
	files, err := fs.Glob(root.FS(), "*")
	if want := "a.png a.png.7-13.tmp a.png.7-x.tmp a.png.77-10.tmp b.png.7-11.tmp"; err != nil || strings.Join(files, " ") != want {
		t.Errorf("there are %v (%v)", files, err)
	}
}
