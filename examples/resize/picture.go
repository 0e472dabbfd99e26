package main

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	_ "image/gif" // reads only the first picture
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path"
	"strings"
)

// These bound a picture, because a small file can claim to have billions of pixels.
const (
	fileBytesMax = 64 << 20
	pixelsMax    = 50_000_000
	sideMax      = 20_000
)

// load reads a picture. An error while reading may be gone at the next attempt, but invalid content stays invalid.
func load(root *os.Root, name string) (image.Image, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > fileBytesMax {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", errNever, name, fileBytesMax)
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errNever, name, err)
	}
	if size.Width < 1 || size.Height < 1 || size.Width > pixelsMax/size.Height {
		return nil, fmt.Errorf("%w: %s has %d x %d pixels", errNever, name, size.Width, size.Height)
	}
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errNever, name, err)
	}
	return picture, nil
}

// shrink returns the picture with that width, in proportion. Each new pixel is the average of the pixels that it
// replaces. It never makes a picture larger.
func shrink(picture image.Image, width int) *image.RGBA {
	b := picture.Bounds()
	src := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(src, src.Rect, picture, b.Min, draw.Src)
	width = min(width, b.Dx())
	height := max(1, b.Dy()*width/b.Dx())
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			box := image.Rect(x*b.Dx()/width, y*b.Dy()/height, (x+1)*b.Dx()/width, (y+1)*b.Dy()/height)
			average(dst.Pix[dst.PixOffset(x, y):], src, box)
		}
	}
	return dst
}

// average sets the pixel to the average of the box. The box must not be empty.
func average(pixel []uint8, src *image.RGBA, box image.Rectangle) {
	var sum [4]int
	for y := box.Min.Y; y < box.Max.Y; y++ {
		row := src.Pix[src.PixOffset(box.Min.X, y):src.PixOffset(box.Max.X, y)]
		for i, v := range row {
			sum[i%4] += int(v)
		}
	}
	count := box.Dx() * box.Dy()
	for i := range sum {
		pixel[i] = uint8(sum[i] / count)
	}
}

// encode returns the picture in the format of the name's ending.
func encode(picture image.Image, name string) ([]byte, error) {
	var out bytes.Buffer
	var err error
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg":
		err = jpeg.Encode(&out, picture, &jpeg.Options{Quality: 85})
	case ".png":
		err = png.Encode(&out, picture)
	default:
		err = fmt.Errorf("%w: %s does not end with .jpg, .jpeg or .png", errNever, name)
	}
	return out.Bytes(), err
}
