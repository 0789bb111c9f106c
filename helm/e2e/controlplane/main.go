// Command controlplane is the Kubernetes control plane the chart is installed on in tests: kube-apiserver,
// kube-controller-manager and kube-scheduler of one release in one program, chosen by the first argument. It
// exists because `go install` cannot install the upstream commands, whose module has replace directives.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // as upstream: time zones of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // as upstream
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as upstream
	_ "k8s.io/component-base/metrics/prometheus/version"  // as upstream
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr,
			"usage: controlplane kube-apiserver|kube-controller-manager|kube-scheduler [flags]")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	os.Exit(cli.Run(commands[name]()))
}
