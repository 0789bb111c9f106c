package outbound

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// readWhole reads a body under the cap: of the bytes on the wire and of what they decompress to.
func (c *Client) readWhole(a *Answer, res *http.Response) error {
	if res.ContentLength > c.maxBody {
		return &Error{Reason: TooLarge}
	}
	var from io.Reader = res.Body
	switch coding := strings.ToLower(strings.Join(res.Header.Values("Content-Encoding"), ",")); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			return &Error{Reason: BadEncoding}
		}
		from = z
	default: // two codings on each other included
		return &Error{Reason: BadEncoding}
	}
	body, err := readCapped(from, c.maxBody, res.ContentLength)
	if err != nil {
		return err
	}
	a.Body, a.End = body, true
	return nil
}

func readCapped(from io.Reader, most, hint int64) ([]byte, error) {
	var b bytes.Buffer
	if hint > 0 {
		b.Grow(int(min(hint, most)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(from, most+1))
	if n > most {
		return nil, &Error{Reason: TooLarge}
	}
	if err != nil {
		return nil, bodyFailure(err)
	}
	return b.Bytes(), nil
}

// bodyFailure keeps errors of the connection and names those of the coding.
func bodyFailure(err error) error {
	if strings.HasPrefix(err.Error(), "gzip:") || strings.HasPrefix(err.Error(), "flate:") {
		return &Error{Reason: BadEncoding}
	}
	return err
}

// ask sets the header of a request for a part. The part must be of the body itself, so no coding is offered.
func (p Part) ask(h http.Header) {
	h.Set("Range", fmt.Sprintf("bytes=%d-%d", p.Offset, p.Offset+p.Length-1))
	h.Set("Accept-Encoding", "identity")
}

// readPart reads a part from an answer that holds it (206), or from one that holds the whole (200): not every store of
// files knows ranges.
func (c *Client) readPart(a *Answer, res *http.Response, p Part) error {
	p.Length = min(p.Length, c.maxBody)
	if coding := res.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &Error{Reason: BadEncoding}
	}
	total := int64(-1)
	if res.StatusCode == http.StatusPartialContent {
		first, whole, ok := contentRange(res.Header.Get("Content-Range"))
		if !ok || first != p.Offset {
			return &Error{Reason: BadPartial}
		}
		total = whole
	} else if n, err := io.CopyN(io.Discard, res.Body, p.Offset); err == io.EOF { //nolint:errorlint // CopyN returns io.EOF itself
		a.End = n <= p.Offset
		return nil
	} else if err != nil {
		return err
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(res.Body, p.Length))
	if err != nil {
		return err
	}
	a.Body = b.Bytes()
	switch {
	case total >= 0:
		a.End = p.Offset+n >= total
	case n < p.Length:
		a.End = true
	default:
		more, _ := io.CopyN(io.Discard, res.Body, 1)
		a.End = more == 0
	}
	return nil
}

// contentRange reads "bytes 0-9/100"; the whole is -1 when it is not known.
func contentRange(text string) (first, whole int64, ok bool) {
	unit, spec, _ := strings.Cut(text, " ")
	span, size, found := strings.Cut(spec, "/")
	from, _, dash := strings.Cut(span, "-")
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
