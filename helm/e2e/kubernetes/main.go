// Command kubernetes is what a cluster runs of one Kubernetes release, in one program, chosen by the first
// argument: the control plane, kubelet, kube-proxy and kubectl. The charts of tests are installed on it. It
// exists because `go install` cannot install the upstream commands, whose module has replace directives.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	_ "time/tzdata" // as upstream: time zones of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // as upstream
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as upstream
	_ "k8s.io/component-base/metrics/prometheus/version"  // as upstream
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 newKubelet,
		"kube-proxy":              proxy.NewProxyCommand,
		"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: kubernetes %s [flags]\n",
			strings.Join(slices.Sorted(maps.Keys(commands)), "|"))
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	os.Exit(cli.Run(commands[name]()))
}
