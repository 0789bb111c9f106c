package project

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// The ports that ClaimPort gives out lie below the usual range of the ports of outgoing connections.
const (
	firstPort = 12_000
	lastPort  = 31_999
)

// The file of claims holds 32-bit numbers: the index of the port to look at next, then for each port the
// process that claimed it.
const (
	claimBytes = 4
	claimsSize = (1 + lastPort - firstPort + 1) * claimBytes
)

// ClaimPort returns a port of the loopback interface that is free and belongs to this process until it ends:
// no other call in any process of this user returns the same one. A server may therefore stop and start again
// on its port.
//
// Claims stand in one file in the folder for temporary files, which is locked while a port is chosen. Ports
// are given out in turn, so that the port of a process that has ended is not reused until all others were.
func ClaimPort() (port int, err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("storefront-ports-%d", os.Getuid())),
		os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which unlocks it
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	claims := make([]byte, claimsSize)
	if _, err := f.ReadAt(claims, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if port, err = claim(claims, os.Getpid()); err != nil {
		return 0, err
	}
	_, err = f.WriteAt(claims, 0)
	return port, err
}

// claim chooses a port and writes down who has it.
func claim(claims []byte, pid int) (int, error) {
	const ports = lastPort - firstPort + 1
	next := binary.LittleEndian.Uint32(claims)
	for range ports {
		i := next % ports
		next = i + 1
		owner := claims[(1+i)*claimBytes:]
		if alive(int(binary.LittleEndian.Uint32(owner))) || !free(firstPort+int(i)) {
			continue
		}
		binary.LittleEndian.PutUint32(owner, uint32(pid))
		binary.LittleEndian.PutUint32(claims, next)
		return firstPort + int(i), nil
	}
	return 0, fmt.Errorf("no port from %d to %d is free", firstPort, lastPort)
}

// alive reports whether a process exists; 0 is none.
func alive(pid int) bool {
	return pid != 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func free(port int) bool {
	l, err := net.Listen("tcp", Loopback(port))
	return err == nil && l.Close() == nil
}

// ClaimAddress is the loopback address of a claimed port.
func ClaimAddress() (string, error) {
	port, err := ClaimPort()
	return Loopback(port), err
}

// Loopback is the address of a local port.
func Loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
