package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// serviceLog writes a service's log to a file and shows its warnings and errors to the person at the console.
type serviceLog struct {
	name    string
	console io.Writer

	mu   sync.Mutex
	file *os.File
	line []byte
}

const longestLine = 64 << 10

func openLog(dir, name string, console io.Writer) (*serviceLog, error) {
	f, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	return &serviceLog{name: name, console: console, file: f}, nil
}

// Write keeps the bytes as they are and looks for whole lines.
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
	}
	if json.Unmarshal(line, &entry) != nil || (entry.Level != "WARN" && entry.Level != "ERROR") {
		return
	}
	fmt.Fprintf(l.console, "%s: %s %s %s\n", l.name, entry.Level, entry.Msg, entry.Error)
}
