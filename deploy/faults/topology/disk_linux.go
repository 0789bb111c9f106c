package topology

import (
	"errors"
	"fmt"
	"syscall"
)

const diskSize = 6 << 30

// Fill leaves no free space but a few pages.
func (d *Disk) Fill() error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &s); err != nil {
		return err
	}
	used := (int64(s.Blocks) - int64(s.Bfree)) * s.Bsize // a size
	// The file system rejects a size below the used one, which may grow meanwhile.
	for _, space := range []int64{64 << 10, 1 << 20, 8 << 20} {
		err := d.resize(syscall.MS_REMOUNT, used+space)
		if err == nil || !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return fmt.Errorf("%s could not be filled", d.Path)
}

// Free restores the free space.
func (d *Disk) Free() error { return d.resize(syscall.MS_REMOUNT, diskSize) }

func (d *Disk) mount() error { return d.resize(0, diskSize) }

func (d *Disk) resize(flags uintptr, size int64) error {
	return syscall.Mount("tmpfs", d.Path, "tmpfs", flags, fmt.Sprintf("size=%d,mode=0755", size))
}

func (d *Disk) unmount() error { return syscall.Unmount(d.Path, syscall.MNT_DETACH) }
