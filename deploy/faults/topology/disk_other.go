//go:build unix && !linux

package topology

import "errors"

var errNoMount = errors.New("a disk can be filled on Linux only")

// Fill fails: the disk is a folder.
func (d *Disk) Fill() error { return errNoMount }

// Free fails: the disk is a folder.
func (d *Disk) Free() error { return errNoMount }

func (d *Disk) mount() error   { return errNoMount }
func (d *Disk) unmount() error { return errNoMount }
