package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"storefront.internal/helm/e2e/program"
)

// module is a published Go module whose files are read, with its sum in the checksum database.
type module struct{ version, sum string }

// modules contain the definitions of the custom resources and the stages of KWOK.
var modules = map[string]module{
	"github.com/prometheus-operator/prometheus-operator": {"v0.93.1",
		"h1:4Juk8v93RdG1DSGD/mGp+SeQKPmnlLIj2iq3blLZgFY="},
	"github.com/kedacore/keda/v2": {"v2.21.0",
		"h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps="},
	"sigs.k8s.io/gateway-api": {"v1.6.1",
		"h1:mock6phZbI6rvZerwrVNk7hVNymQgHo+6sJ81Ia7ftY="},
	"sigs.k8s.io/kwok": {"v0.8.0",
		"h1:OTIOTwgROqPMovcTwxICx2eYQ4AwLpSx5EpjbDKF4SQ="},
}

// definitions are files of those modules.
var definitions = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
	"github.com/kedacore/keda/v2": {"config/crd/bases/keda.sh_scaledobjects.yaml",
		"config/crd/bases/keda.sh_triggerauthentications.yaml"},
	"sigs.k8s.io/gateway-api": {
		"config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
		"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
	},
}

// moduleDir downloads a module, if needed, and returns its folder.
func moduleDir(path string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", path+"@"+modules[path].version)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w\n%s", path, err, out)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", err
	}
	if got.Sum != modules[path].sum {
		return "", fmt.Errorf("%s: the sum is %s, not %s", path, got.Sum, modules[path].sum)
	}
	return got.Dir, nil
}

var named = regexp.MustCompile(`(?m)^  name: (\S+)$`)

// define applies the definitions and waits until the API server serves them.
func (c *cluster) define() error {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	var names []string
	for module, files := range definitions {
		dir, err := moduleDir(module)
		if err != nil {
			return err
		}
		for _, file := range files {
			yaml, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			name := named.FindSubmatch(yaml)
			if name == nil || bytes.Count(yaml, []byte("\nkind: CustomResourceDefinition\n")) != 1 {
				return fmt.Errorf("%s is not one definition", file)
			}
			if err := c.api.apply(path+string(name[1]), yaml); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			names = append(names, string(name[1]))
		}
	}
	return program.Wait(time.Minute, func() error {
		for _, name := range names {
			var crd object
			if err := c.api.get(path+name, &crd); err != nil {
				return err
			}
			if condition(crd, "Established") != "True" {
				return fmt.Errorf("%s is not established", name)
			}
			group, version := crd.text("spec", "group"), crd.text("spec", "versions", 0, "name")
			if err := c.api.call(http.MethodGet, "/apis/"+group+"/"+version+"/"+crd.text("spec", "names",
				"plural"), nil, nil); err != nil {
				return err
			}
		}
		return nil
	})
}
