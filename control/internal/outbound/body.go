package outbound

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// firstBlock is what is read of a body before more than that is reserved: most responses are smaller, and a
// slow one holds no more before it has sent as much.
const firstBlock = 64 << 10

// readWhole reads a body up to most bytes, on the wire and decompressed.
func (a *Response) readWhole(ctx context.Context, res *http.Response, most int64) error {
	if res.ContentLength > most {
		return &Error{Reason: TooLarge}
	}
	var from io.Reader = res.Body
	switch coding := strings.ToLower(strings.Join(res.Header.Values("Content-Encoding"), ",")); coding {
	case "", "identity":
		if res.ContentLength >= 0 {
			most = res.ContentLength
		}
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			return &Error{Reason: BadEncoding}
		}
		from = z
	default: // also two codings
		return &Error{Reason: BadEncoding}
	}
	n, err := a.read(ctx, from, most+1)
	if n > most {
		return &Error{Reason: TooLarge}
	}
	if err != nil {
		return bodyFailure(err)
	}
	a.EOF = true
	return nil
}

// read reads up to most bytes into the body, and reserves them.
func (a *Response) read(ctx context.Context, from io.Reader, most int64) (int64, error) {
	size := min(firstBlock, most)
	if err := a.reserved.resize(ctx, size); err != nil {
		return 0, err
	}
	body := make([]byte, 0, size)
	for int64(len(body)) < most {
		if len(body) == cap(body) {
			if err := a.reserved.resize(ctx, most); err != nil {
				return int64(len(body)), err
			}
			body = append(make([]byte, 0, min(2*int64(cap(body)), most)), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return int64(len(body)), err
		}
	}
	a.Body = body
	a.reserved.shrink(int64(cap(body)))
	return int64(len(body)), nil
}

// bodyFailure turns errors of the content coding into BadEncoding and keeps those of the connection.
func bodyFailure(err error) error {
	if strings.HasPrefix(err.Error(), "gzip:") || strings.HasPrefix(err.Error(), "flate:") {
		return &Error{Reason: BadEncoding}
	}
	return err
}

// setHeader asks for a part. It must be of the body itself, so no content coding is accepted.
func (p ByteRange) setHeader(h http.Header) {
	h.Set("Range", fmt.Sprintf("bytes=%d-%d", p.Offset, p.Offset+p.Length-1))
	h.Set("Accept-Encoding", "identity")
}

// readPart reads a part from a response that holds it (206), or from one that holds the whole (200): not
// every server supports ranges.
func (a *Response) readPart(ctx context.Context, res *http.Response, p ByteRange) error {
	if coding := res.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &Error{Reason: BadEncoding}
	}
	total := int64(-1)
	if res.StatusCode == http.StatusPartialContent {
		first, whole, ok := contentRange(res.Header.Get("Content-Range"))
		if !ok || first != p.Offset {
			return &Error{Reason: BadContentRange}
		}
		total = whole
	} else if n, err := io.CopyN(io.Discard, res.Body, p.Offset); errors.Is(err, io.EOF) {
		a.EOF = n <= p.Offset
		return nil
	} else if err != nil {
		return err
	}
	n, err := a.read(ctx, res.Body, p.Length)
	if err != nil {
		return err
	}
	switch {
	case total >= 0:
		a.EOF = p.Offset+n >= total
	case n < p.Length:
		a.EOF = true
	default:
		more, _ := io.CopyN(io.Discard, res.Body, 1)
		a.EOF = more == 0
	}
	return nil
}

// contentRange parses "bytes 0-9/100"; whole is -1 when it is unknown.
func contentRange(text string) (first, whole int64, ok bool) {
	unit, spec, _ := strings.Cut(text, " ")
	raw, size, found := strings.Cut(spec, "/")
	from, _, dash := strings.Cut(raw, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if unit != "bytes" || !found || !dash || err != nil {
		return 0, 0, false
	}
	if size == "*" {
		return first, -1, true
	}
	whole, err = strconv.ParseInt(size, 10, 64)
	return first, whole, err == nil
}
