package topology

import "os"

// Disk holds the data of a store: a small file system of its own where this process may mount one, else a
// folder.
type Disk struct {
	Path    string
	mounted bool
}

// newDisk mounts a file system in memory. Where that is not permitted the disk is a folder, which cannot be
// filled.
func newDisk(path string, wanted bool) (*Disk, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	d := &Disk{Path: path}
	d.mounted = wanted && d.mount() == nil
	return d, nil
}

// CanFill reports whether the disk can be filled.
func (d *Disk) CanFill() bool { return d.mounted }

func (d *Disk) close() error {
	if !d.mounted {
		return nil
	}
	return d.unmount()
}
