// Command etcd is the store of the control plane that the chart is installed on in tests. It adds nothing to etcd; it exists
// because the upstream command cannot be installed by version, its module having replace lines.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
