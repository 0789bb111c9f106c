package topology

import "os"

// Disk is where one of the stores keeps its data: a small file system of its own where that can be had, so that it can be full.
type Disk struct {
	Path    string
	mounted bool
}

// newDisk mounts a file system in memory. For somebody who may not it is an ordinary folder, which is never full.
func newDisk(path string, wanted bool) (*Disk, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	d := &Disk{Path: path}
	d.mounted = wanted && d.mount() == nil
	return d, nil
}

// CanFill tells whether the disk can be made full.
func (d *Disk) CanFill() bool { return d.mounted }

func (d *Disk) close() error {
	if !d.mounted {
		return nil
	}
	return d.unmount()
}
