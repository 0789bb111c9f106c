package process

import "syscall"

func attributes(s Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: s.Death}
	if s.Death == 0 {
		a.Pdeathsig = syscall.SIGKILL
	}
	if s.User != nil {
		a.Credential = &syscall.Credential{Uid: s.User.UID, Gid: s.User.GID}
	}
	return a
}
