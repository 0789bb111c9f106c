package live

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/observability/alerts"
)

// prometheus is a running one.
type prometheus struct {
	*process
	url   string
	since time.Time
}

// holding matches the time that a condition must hold.
var holding = regexp.MustCompile(`(?m)^        for: .*$`)

// startPrometheus scrapes the three services every two seconds, by the rules with their holding times shortened. Native histograms stay off: a Prometheus that takes them drops the classic
// buckets that rules and dashboards use, unless it is told to take both (always_scrape_classic_histograms), which this version cannot.
func startPrometheus(ctx context.Context, dir string, e env) (*prometheus, error) {
	port, err := project.FreePort()
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	config.WriteString("global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}\nrule_files: [rules.yaml]\nscrape_configs:\n")
	for job, variable := range map[string]string{"edge": "EDGE_ADMIN_URL", "control": "CONTROL_ADMIN_URL", "engine-relay": "RELAY_ADMIN_URL"} {
		at, err := url.Parse(e[variable])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&config, "  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, at.Host)
	}
	files := map[string]string{"prometheus.yaml": config.String(), "rules.yaml": holding.ReplaceAllString(alerts.RulesFile(), "        for: 4s")}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		return nil, err
	}
	listen := project.Loopback(port)
	p, err := start(ctx, log, dir, nil, "prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+listen)
	if err != nil {
		return nil, err
	}
	prom := &prometheus{process: p, url: "http://" + listen, since: time.Now()}
	return prom, until(ctx, "Prometheus is ready", func() (bool, error) {
		res, err := http.Get(prom.url + "/-/ready")
		if err != nil {
			return false, err
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK, nil
	})
}

// until asks again and again for two minutes.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(250 * time.Millisecond) {
		var done bool
		if done, err = ok(); done {
			return nil
		}
	}
	return fmt.Errorf("not in time: %s (%w)", what, err)
}

func (p *prometheus) get(ctx context.Context, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("prometheus: %s", answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// points counts the values of an expression since the beginning, NaN left out.
func (p *prometheus) points(ctx context.Context, expr string) (int, error) {
	now := time.Now()
	var data struct {
		Result []struct{ Values [][2]any }
	}
	query := url.Values{"query": {expr}, "start": {strconv.FormatInt(p.since.Unix(), 10)}, "end": {strconv.FormatInt(now.Unix(), 10)}, "step": {"5"}}
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

// rule is one rule as Prometheus evaluated it.
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

// awaitState waits until an alert is in a state: firing, or inactive.
func (p *prometheus) awaitState(ctx context.Context, alert, state string) error {
	return until(ctx, alert+" is "+state, func() (bool, error) {
		all, err := p.rules(ctx)
		for _, r := range all {
			if r.Name == alert && r.State == state {
				return true, nil
			}
		}
		return false, err
	})
}
