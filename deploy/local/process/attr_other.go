//go:build unix && !linux

package process

import "syscall"

// Only Linux can tie a child's life to its parent's; elsewhere a killed parent leaves its children running.
func attributes(s Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if s.User != nil {
		a.Credential = &syscall.Credential{Uid: s.User.UID, Gid: s.User.GID}
	}
	return a
}
