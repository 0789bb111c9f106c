package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// timeout is the longest wait for a response.
const timeout = 30 * time.Second

type connection struct {
	net.Conn
	in   *bufio.Reader
	body []byte
}

func dial(address string) (*connection, error) {
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}, nil
}

// exchange sends a request and reads its response; the body is valid until the next call.
func (c *connection) exchange(request []byte) (status int, body []byte, err error) {
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.Write(request); err != nil {
		return 0, nil, err
	}
	status, length, err := c.head()
	if err != nil {
		return 0, nil, err
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, c.body, err
}

const lengthName = "content-length:"

// head reads the status line and the header fields.
func (c *connection) head() (status, length int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, fmt.Errorf("status line %q", line)
	}
	length = -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if len(line) > len(lengthName) && strings.EqualFold(string(line[:len(lengthName)]), lengthName) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthName):]))); err != nil {
				return 0, 0, err
			}
		}
	}
	if length < 0 && status != 204 && status != 304 {
		return 0, 0, errors.New("an answer without Content-Length")
	}
	return status, max(length, 0), nil
}
