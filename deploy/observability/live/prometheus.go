package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"storefront.internal/deploy/faults/topology"
	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/poll"
)

// prometheus is a running Prometheus.
type prometheus struct {
	*process.Process
	url   string
	since time.Time
}

// forClause matches the time for which the condition of an alert must hold.
var forClause = regexp.MustCompile(`(?m)^        for: .*$`)

// startPrometheus scrapes the services every two seconds. Native histograms are disabled: this version of
// Prometheus would drop the classic buckets, which the rules and dashboards use.
func startPrometheus(ctx context.Context, root, dir string, x *topology.Topology) (*prometheus, error) {
	address, err := project.ClaimAddress()
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	config.WriteString("global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}\n" +
		"rule_files: [rules.yaml]\nscrape_configs:\n")
	for job, services := range map[string][]*stack.Process{"edge": x.Edges, "relay": x.Relays,
		"control": {x.Control}} {
		fmt.Fprintf(&config, "  - job_name: %s\n    static_configs:\n", job)
		for i, s := range services {
			fmt.Fprintf(&config, "      - {targets: [%q], labels: %s}\n", s.Admin, targetLabels(job, i))
		}
	}
	rules, err := os.ReadFile(filepath.Join(root, "helm/storefront/rules/storefront.yaml"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"prometheus.yaml": config.String(),
		"rules.yaml":      forClause.ReplaceAllString(string(rules), "        for: 4s"),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	path, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		return nil, err
	}
	child, err := process.Start(process.Spec{Name: "prometheus", Path: path, Env: os.Environ(), Log: log,
		Args: []string{
			"--config.file=" + filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path=" +
				filepath.Join(dir, "tsdb"),
			"--web.listen-address=" + address,
		}})
	if err != nil {
		return nil, err
	}
	p := &prometheus{Process: child, url: "http://" + address, since: time.Now()}
	return p, poll.Within(ctx, 2*time.Minute, "Prometheus is ready",
		func() error { return stack.Probe(ctx, p.url+"/-/ready") })
}

// targetLabels are the labels that the Prometheus operator gives to a target of the chart's ServiceMonitors.
// They win over labels of the metrics.
func targetLabels(job string, i int) string {
	return fmt.Sprintf("{namespace: shop, service: sf-storefront-%s-ops, pod: sf-storefront-%s-%d, "+
		"container: %s, endpoint: ops, node: node-0, prometheus: monitoring/k8s, cluster: c1, release: sf}",
		job, job, i, job)
}

// stop ends Prometheus. Its data is not needed any more.
func (p *prometheus) stop() { _ = p.Stop(syscall.SIGINT, time.Minute) }

func (p *prometheus) get(ctx context.Context, path string, query url.Values, into any) error {
	var answer struct{ Data json.RawMessage }
	if err := client.Call(ctx, nil, client.Request{Method: http.MethodGet,
		URL: p.url + path + "?" + query.Encode()}, &answer); err != nil {
		return err
	}
	return json.Unmarshal(answer.Data, into)
}

// points returns the number of values of an expression since the start, without NaN.
func (p *prometheus) points(ctx context.Context, expr string) (int, error) {
	now := time.Now()
	var data struct {
		Result []struct{ Values [][2]any }
	}
	query := url.Values{"query": {expr}, "start": {strconv.FormatInt(p.since.Unix(), 10)},
		"end": {strconv.FormatInt(now.Unix(), 10)}, "step": {"5"}}
	if err := p.get(ctx, "/api/v1/query_range", query, &data); err != nil {
		return 0, err
	}
	n := 0
	for _, series := range data.Result {
		for _, v := range series.Values {
			text, _ := v[1].(string)
			if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
				n++
			}
		}
	}
	return n, nil
}

// rule is the state of a rule.
type rule struct {
	Name, Health, State, LastError string
	LastEvaluation                 time.Time
}

func (p *prometheus) rules(ctx context.Context) ([]rule, error) {
	var data struct{ Groups []struct{ Rules []rule } }
	if err := p.get(ctx, "/api/v1/rules", nil, &data); err != nil {
		return nil, err
	}
	var all []rule
	for _, g := range data.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}

// awaitState waits until an alert is firing or inactive.
func (p *prometheus) awaitState(ctx context.Context, alert, state string) error {
	return poll.Within(ctx, 3*time.Minute, alert+" is "+state, func() error {
		all, err := p.rules(ctx)
		for _, r := range all {
			if r.Name == alert && r.State == state {
				return nil
			}
		}
		return errors.Join(err, errors.New("not yet"))
	})
}
