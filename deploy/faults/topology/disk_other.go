//go:build unix && !linux

package topology

import "errors"

var errNoMount = errors.New("a disk can be made full on Linux only")

// Fill fails: the disk is an ordinary folder.
func (d *Disk) Fill() error { return errNoMount }

// Free fails likewise.
func (d *Disk) Free() error { return errNoMount }

func (d *Disk) mount() error   { return errNoMount }
func (d *Disk) unmount() error { return errNoMount }
