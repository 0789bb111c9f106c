package pods

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"storefront.internal/helm/e2e/program"
)

const (
	chart       = "../../storefront"
	trialValues = trial + "/values.yaml"
	moreValues  = "testdata/values.yaml"
)

// TestCluster runs the tests in their order. RUN='TestCluster/(trial|node|drain)' runs some of them.
func TestCluster(t *testing.T) {
	for _, one := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"trial", walkTrial},
		{"node", addNode},
		{"upgrade", upgrade},
		{"rollback", rollBack},
		{"control", negativeControl},
		{"delete", deletePod},
		{"kill", killProcess},
		{"drain", drain},
		{"autoscaler", keepReplicas},
		{"configuration", badConfiguration},
		{"uninstall", uninstall},
		{"previous", upgradeFromPrevious},
	} {
		if !t.Run(one.name, one.run) && (one.name == "trial" || one.name == "node") {
			t.Fatal("the other tests need this")
		}
	}
}

// release upgrades or installs the chart with the values of the tests, and waits until all pods are ready.
func release(verb, chart string, more ...string) error {
	args := append([]string{verb, "storefront", chart, "-f", trialValues, "-f", moreValues, "--wait",
		"--timeout=5m"}, more...)
	if _, err := helm(args...); err != nil {
		return err
	}
	return ready()
}

// ready waits until every pod of the release is ready: Helm also returns when fewer are.
func ready() error {
	for _, name := range []string{"edge", "control", "relay"} {
		if _, err := kubectl("-n", namespace, "rollout", "status", "deployment/storefront-"+name,
			"--timeout=3m"); err != nil {
			return err
		}
	}
	return nil
}

// replace are values that replace all pods.
func replace(name string) []string {
	return []string{"--set=edge.podAnnotations.run=" + name, "--set=control.podAnnotations.run=" + name,
		"--set=relay.podAnnotations.run=" + name}
}

func addNode(t *testing.T) {
	if err := shared.addNode(); err != nil {
		t.Fatal(errors.Join(err, shared.alive()))
	}
	if err := release("upgrade", chart); err != nil {
		t.Fatal(err)
	}
	where := map[string]int{}
	for _, p := range podsOf(t, "edge") {
		where[p.Spec.NodeName]++
	}
	if where["node-0"] != 1 || where["node-1"] != 1 {
		t.Errorf("the pods of edge are on %v, want one on each node", where)
	}
}

func upgrade(t *testing.T) {
	undisturbed(t, disturbance{name: "upgrade", run: func() error {
		return release("upgrade", chart, append(replace(stamp()),
			"--set-string=edge.config.EDGE_MAX_IN_FLIGHT=2000")...)
	}})
}

func rollBack(t *testing.T) {
	undisturbed(t, disturbance{name: "rollback", run: func() error { return rollBackTo("0") }})
}

// rollBackTo goes back to a revision of the release; 0 is the one before.
func rollBackTo(revision string) error {
	if _, err := helm("rollback", "storefront", revision, "--wait", "--timeout=5m"); err != nil {
		return err
	}
	return ready()
}

// stamp is another text each time.
func stamp() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

// negativeControl shows that the loads see what the chart's shutdown prevents.
func negativeControl(t *testing.T) {
	hasty := []string{"--set=edge.shutdown.preStopSleepSeconds=0", "--set=edge.shutdown.drainDelaySeconds=0"}
	if err := release("upgrade", chart, hasty...); err != nil {
		t.Fatal(err)
	}
	o := disturb(t, "hasty", func() error {
		return release("upgrade", chart, append(replace("hasty"), hasty...)...)
	})
	if o.err != nil {
		t.Error(o.err)
	}
	if o.failed() == 0 {
		t.Error("pods that end at once refused nobody, so the other tests prove nothing")
	}
	if err := release("upgrade", chart); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T) {
	undisturbed(t, disturbance{name: "delete", run: func() error {
		_, err := kubectl("-n", namespace, "delete", "pod", podsOf(t, "edge")[0].Metadata.Name, "--wait")
		return errors.Join(err, ready())
	}})
}

// killProcess kills an edge. What is under way fails; nothing that was accepted is lost.
func killProcess(t *testing.T) {
	o := disturb(t, "kill", func() error {
		comms, err := filepath.Glob("/proc/[0-9]*/comm")
		if err != nil {
			return err
		}
		for _, path := range comms {
			if comm, _ := os.ReadFile(path); string(comm) == "edge\n" {
				id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return errors.Join(err, syscall.Kill(id, syscall.SIGKILL), program.Wait(time.Minute, ready))
			}
		}
		return errors.New("no edge runs on node 0")
	})
	if o.err != nil {
		t.Fatal(o.err)
	}
	if all := o.kept.sent + o.fresh.sent; o.failed() > all/4 {
		t.Errorf("%d of %d requests failed", o.failed(), all)
	}
}

// drain empties node 1, on which there is a pod of each service.
func drain(t *testing.T) {
	spread := func() error {
		if _, err := kubectl("uncordon", "node-1"); err != nil {
			return err
		}
		return release("upgrade", chart, replace(stamp())...)
	}
	undisturbed(t, disturbance{name: "drain", prepare: spread, run: func() error {
		_, err := kubectl("drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m")
		return errors.Join(err, ready())
	}})
	if err := spread(); err != nil {
		t.Fatal(err)
	}
}

// keepReplicas checks that an upgrade keeps the number of pods that an autoscaler chose.
func keepReplicas(t *testing.T) {
	scale := func() error {
		if err := release("upgrade", chart); err != nil {
			return err
		}
		_, err := kubectl("-n", namespace, "scale", "deployment/storefront-edge", "--replicas=3")
		return errors.Join(err, ready())
	}
	scaled := []string{"--set=edge.autoscaling.enabled=true", "--set=edge.autoscaling.minReplicas=2"}
	undisturbed(t, disturbance{name: "autoscaler", prepare: scale, run: func() error {
		for range 2 { // the upgrade that enables it, and one after it
			if err := release("upgrade", chart, scaled...); err != nil {
				return err
			}
			if n := len(podsOf(t, "edge")); n != 3 {
				return fmt.Errorf("%d pods of edge, 3 expected", n)
			}
		}
		return nil
	}})
	if err := release("upgrade", chart); err != nil {
		t.Fatal(err)
	}
}

// badConfiguration rolls out a setting that edge rejects: the rollout stops, the old pods serve, an event and
// the log of the new pod tell why, and a rollback repairs it.
func badConfiguration(t *testing.T) {
	good, err := helm("history", "storefront", "--max=1", "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	var last []struct{ Revision int }
	if err := json.Unmarshal([]byte(good), &last); err != nil || len(last) != 1 {
		t.Fatalf("history: %v\n%s", err, good)
	}
	undisturbed(t, disturbance{name: "configuration", run: func() error {
		if _, err := helm("upgrade", "storefront", chart, "-f", trialValues, "-f", moreValues, "--wait",
			"--timeout=45s", "--set-string=edge.config.EDGE_MAX_WAIT=soon"); err == nil {
			return errors.New("a setting that edge rejects was rolled out")
		}
		return errors.Join(tellsWhy(t), rollBackTo(strconv.Itoa(last[0].Revision)))
	}})
}

// tellsWhy checks that a log and an event tell of the setting that edge rejects.
func tellsWhy(t *testing.T) error {
	told := errors.New("no pod's log names the setting that is wrong")
	for _, p := range podsOf(t, "edge") {
		for _, c := range p.Status.ContainerStatuses {
			if c.Ready {
				continue
			}
			log, err := kubectl("-n", namespace, "logs", p.Metadata.Name, "--tail=20")
			if err == nil && strings.Contains(log, "EDGE_MAX_WAIT") {
				told = nil
			}
		}
	}
	events, err := kubectl("-n", namespace, "get", "events", "--field-selector=reason=BackOff")
	if err == nil && !strings.Contains(events, "storefront-edge") {
		err = fmt.Errorf("no event tells that a pod restarts again and again:\n%s", events)
	}
	return errors.Join(told, err)
}

func uninstall(t *testing.T) {
	if _, err := helm("uninstall", "storefront", "--wait", "--timeout=3m"); err != nil {
		t.Fatal(err)
	}
	left, err := kubectl("-n", namespace, "get", "deployments,services,configmaps,secrets,serviceaccounts,"+
		"networkpolicies,poddisruptionbudgets,horizontalpodautoscalers", "-o", "name",
		"-l", "app.kubernetes.io/instance=storefront")
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("left after the uninstallation: %v\n%s", err, left)
	}
}

// upgradeFromPrevious installs the release before on new stores and upgrades it under load.
func upgradeFromPrevious(t *testing.T) {
	if _, err := helm("uninstall", "storefront", "--ignore-not-found", "--wait", "--timeout=3m"); err != nil {
		t.Fatal(err)
	}
	if _, err := kubectl("-n", namespace, "rollout", "restart", "deployment/postgresql", "deployment/redis",
		"deployment/kafka"); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"postgresql", "redis", "kafka"} {
		if _, err := kubectl("-n", namespace, "rollout", "status", "deployment/"+store,
			"--timeout=2m"); err != nil {
			t.Fatal(err)
		}
	}
	values, err := previousValues()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := helm(append(values, "install", "storefront", shared.previous, "--wait", "--timeout=5m",
		"--set=edge.image.tag=previous,control.image.tag=previous,relay.image.tag=previous")...); err != nil {
		t.Fatal(err)
	}
	left := walk(t, readSteps(t, trial+"/README.md")[3:])
	shared.shop = shop{left["CONNECTION"], left["KEY"], left["DECISION"], left["SIGNAL"]}
	undisturbed(t, disturbance{name: "previous", prepare: func() error { return rollBackTo("1") },
		run: func() error { return release("upgrade", chart) }})
}

// previousValues returns the values of the tests, as arguments of helm, without the settings that the release
// before does not have.
func previousValues() (args []string, err error) {
	since := regexp.MustCompile(`EDGE_(CLAIMS_PER_CONNECTION|MAX_CONNECTIONS_PER_ADDRESS): "\d+",? ?`)
	for i, path := range []string{trialValues, moreValues} {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file := shared.path(fmt.Sprintf("previous-%d.yaml", i))
		if err := os.WriteFile(file, since.ReplaceAll(text, nil), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--values="+file)
	}
	return args, nil
}

// pod is what the tests read of a pod.
type pod struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
	}
	Spec   struct{ NodeName string }
	Status struct {
		ContainerStatuses []struct{ Ready bool }
	}
}

// podsOf returns the pods of a component that are not being deleted.
func podsOf(t *testing.T, component string) (all []pod) {
	t.Helper()
	list, err := listPods(",app.kubernetes.io/component=" + component)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Metadata.DeletionTimestamp == "" {
			all = append(all, p)
		}
	}
	return all
}

// listPods returns the pods of the release, and those being deleted, that match more labels.
func listPods(more string) ([]pod, error) {
	text, err := kubectl("-n", namespace, "get", "pods", "-o", "json",
		"-l", "app.kubernetes.io/instance=storefront"+more)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []pod }
	err = json.Unmarshal([]byte(text), &list)
	return list.Items, err
}
