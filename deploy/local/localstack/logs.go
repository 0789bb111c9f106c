package localstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// serviceLog writes the log of a process to a file, and its warnings and errors to the console too.
type serviceLog struct {
	name    string
	console io.Writer

	mu   sync.Mutex
	file *os.File
	line []byte
}

const longestLine = 64 << 10

// openLog opens the log of a process or a store. When that fails the stack runs without it.
func (s *Stack) openLog(name string) io.Writer {
	l, err := openLog(s.project.Run(), name, s.out)
	if err != nil {
		s.say("%s has no log: %v", name, err)
		return io.Discard
	}
	return l
}

func openLog(dir, name string, console io.Writer) (*serviceLog, error) {
	f, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	return &serviceLog{name: name, console: console, file: f}, nil
}

// Write writes the bytes to the file and looks for complete lines.
func (l *serviceLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(b); err != nil {
		return 0, err
	}
	l.line = append(l.line, b...)
	for {
		i := bytes.IndexByte(l.line, '\n')
		if i < 0 {
			break
		}
		l.show(l.line[:i])
		l.line = l.line[i+1:]
	}
	if len(l.line) > longestLine {
		l.line = nil
	}
	return len(b), nil
}

func (l *serviceLog) show(line []byte) {
	var entry struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
		Error string `json:"error"`
		// Of the event of a request.
		Operation string `json:"operation"`
		Status    int    `json:"status"`
		Code      string `json:"code"`
	}
	if json.Unmarshal(line, &entry) != nil || (entry.Level != "WARN" && entry.Level != "ERROR") {
		return
	}
	details := []string{entry.Msg, entry.Operation}
	if entry.Status != 0 {
		details = append(details, strconv.Itoa(entry.Status))
	}
	details = slices.DeleteFunc(append(details, entry.Code, entry.Error),
		func(text string) bool { return text == "" })
	fmt.Fprintf(l.console, "%s: %s %s\n", l.name, entry.Level, strings.Join(details, " "))
}
