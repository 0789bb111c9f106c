// Command etcd is the store of the control plane that the chart is installed on in tests. It exists
// because `go install` cannot install the upstream command, whose module has replace directives.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
