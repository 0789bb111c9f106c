//go:build unix && !linux

package process

import "syscall"

// Only Linux can tie the life of a child to its parent; elsewhere the children of a killed parent go on
// running.
func attributes(s Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if s.User != nil {
		a.Credential = &syscall.Credential{Uid: s.User.UID, Gid: s.User.GID}
	}
	return a
}
