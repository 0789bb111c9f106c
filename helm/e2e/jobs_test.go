package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path"
	"strings"
	"sync"
	"time"
)

// jobRunner runs the pods of Jobs instead of a kubelet. A pod waits until its Secrets, ConfigMaps and service
// account exist. For the control image it runs the binary of the image's tag in the rendered environment.
// Other images succeed at once.
type jobRunner struct {
	api      *api
	binaries map[string]string // by image tag

	mu      sync.Mutex
	runs    []jobRun
	waiting map[string]string // reason by namespace/pod
	seen    map[string]bool   // used by serve only
}

// jobRun is the result of a pod of a Job.
type jobRun struct {
	namespace, job, image string
	args, env             []string
	out                   string
	err                   error
}

// isTest reports whether this is the Job of `helm test`.
func (r jobRun) isTest() bool { return strings.HasSuffix(r.job, "-test") }

func newJobRunner(a *api, binaries map[string]string) *jobRunner {
	return &jobRunner{api: a, binaries: binaries, waiting: map[string]string{}, seen: map[string]bool{}}
}

// serve runs new pods until stop is closed.
func (r *jobRunner) serve(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		var pods list
		const running = "/api/v1/pods?fieldSelector=status.phase=Running" +
			"&labelSelector=batch.kubernetes.io/job-name"
		if err := r.api.get(running, &pods); err != nil {
			continue // retried in the next pass
		}
		for _, p := range pods.Items {
			r.look(p)
		}
	}
}

func (r *jobRunner) look(p object) {
	id := p.namespace() + "/" + p.name()
	if r.seen[id] || p.at("metadata", "deletionTimestamp") != nil {
		return
	}
	env, err := r.environment(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.waiting[id] = err.Error()
		return
	}
	delete(r.waiting, id)
	r.seen[id] = true
	go r.run(p, env)
}

func (r *jobRunner) run(p object, env []string) {
	c := p.items("spec", "containers")[0]
	done := jobRun{namespace: p.namespace(),
		job: p.text("metadata", "labels", "batch.kubernetes.io/job-name"), image: c.text("image"), env: env}
	for _, a := range asList(c.at("args")) {
		done.args = append(done.args, fmt.Sprint(a))
	}
	name, tag, _ := strings.Cut(path.Base(done.image), ":")
	if strings.HasSuffix(name, "control") && c.at("command") == nil {
		binary, known := r.binaries[tag]
		if !known {
			done.err = fmt.Errorf("no binary for the tag %q", tag)
		} else {
			cmd := exec.Command(binary, done.args...)
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			done.out, done.err = string(out), err
		}
	}
	phase, code := "Succeeded", 0
	if done.err != nil {
		phase, code = "Failed", 1
	}
	ended := time.Now().UTC().Format(time.RFC3339)
	status, err := json.Marshal(object{"status": object{"phase": phase, "containerStatuses": []object{{
		"name": c.text("name"), "image": done.image, "imageID": "", "ready": false, "restartCount": 0,
		"state": object{"terminated": object{"exitCode": code, "reason": phase, "startedAt": ended,
			"finishedAt": ended}},
	}}}})
	if err == nil {
		err = r.api.call(http.MethodPatch, "/api/v1/namespaces/"+p.namespace()+"/pods/"+p.name()+"/status",
			status, nil, "application/merge-patch+json")
	}
	done.err = errors.Join(done.err, err)
	r.mu.Lock()
	r.runs = append(r.runs, done)
	r.mu.Unlock()
}

// of returns the runs in a namespace and the reason for which a pod waits.
func (r *jobRunner) of(namespace string) (runs []jobRun, waiting string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.runs {
		if run.namespace == namespace {
			runs = append(runs, run)
		}
	}
	for id, why := range r.waiting {
		if strings.HasPrefix(id, namespace+"/") {
			waiting += why
		}
	}
	return runs, waiting
}

// environment returns the environment of the first container, or the reason why it cannot start.
func (r *jobRunner) environment(p object) ([]string, error) {
	ns := "/api/v1/namespaces/" + p.namespace()
	if err := r.api.get(ns+"/serviceaccounts/"+p.text("spec", "serviceAccountName"), nil); err != nil {
		return nil, err
	}
	for _, v := range p.items("spec", "volumes") {
		for kind, name := range map[string]string{"secrets": v.text("secret", "secretName"),
			"configmaps": v.text("configMap", "name")} {
			if name == "" {
				continue
			}
			if err := r.api.get(ns+"/"+kind+"/"+name, nil); err != nil {
				return nil, err
			}
		}
	}
	c := p.items("spec", "containers")[0]
	var env []string
	for _, from := range c.items("envFrom") {
		values, err := r.data(ns, from, "secretRef", "configMapRef")
		if err != nil {
			return nil, err
		}
		for k, v := range values {
			env = append(env, k+"="+v)
		}
	}
	for _, e := range c.items("env") {
		value, err := r.value(ns, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.text("name"), err)
		}
		env = append(env, e.text("name")+"="+value)
	}
	return env, nil
}

func (r *jobRunner) value(ns string, e object) (string, error) {
	from, ok := e.at("valueFrom").(map[string]any)
	if !ok {
		return e.text("value"), nil
	}
	switch source := object(from); {
	case source["resourceFieldRef"] != nil:
		return "268435456", nil // any memory limit
	case source["fieldRef"] != nil:
		return "here", nil
	default:
		values, err := r.data(ns, source, "secretKeyRef", "configMapKeyRef")
		if err != nil {
			return "", err
		}
		key := source.text("secretKeyRef", "key") + source.text("configMapKeyRef", "key")
		value, there := values[key]
		if !there {
			return "", fmt.Errorf("no key %q", key)
		}
		return value, nil
	}
}

// data reads the Secret or the ConfigMap of a reference.
func (r *jobRunner) data(ns string, o object, secret, config string) (map[string]string, error) {
	if name := o.text(secret, "name"); name != "" {
		var s struct{ Data map[string][]byte }
		err := r.api.get(ns+"/secrets/"+name, &s)
		values := map[string]string{}
		for k, v := range s.Data {
			values[k] = string(v)
		}
		return values, err
	}
	var m struct{ Data map[string]string }
	err := r.api.get(ns+"/configmaps/"+o.text(config, "name"), &m)
	return m.Data, err
}

func asList(v any) []any { l, _ := v.([]any); return l }
