package collect

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"storefront.internal/deploy/stack/client"
)

func (c *collector) metrics(ctx context.Context) error {
	for name, address := range c.Admin {
		samples, err := scrape(ctx, "http://"+address+"/metrics")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.state.Metrics[name] = samples
	}
	return nil
}

// Goroutines returns the number of goroutines of each process.
func Goroutines(ctx context.Context, t Targets) (map[string]float64, error) {
	all := map[string]float64{}
	for name, address := range t.Admin {
		samples, err := scrape(ctx, "http://"+address+"/metrics")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = samples["go_goroutines"]
	}
	return all, nil
}

// Cold reports whether a process lacks claims that Redis has lost. A process that does not answer is not
// asked again.
func Cold(ctx context.Context, t Targets) bool {
	for _, address := range t.Admin {
		samples, err := scrape(ctx, "http://"+address+"/metrics")
		if err == nil && samples["storefront_edge_claims_cold"] > 0 {
			return true
		}
	}
	return false
}

func scrape(ctx context.Context, url string) (map[string]float64, error) {
	r := client.Do(ctx, nil, client.Request{Method: http.MethodGet, URL: url})
	if !r.OK() {
		return nil, fmt.Errorf("%s: %s", url, r)
	}
	return samples(bytes.NewReader(r.Body))
}

// samples reads the text format without timestamps: name, labels, value.
func samples(text io.Reader) (map[string]float64, error) {
	all := map[string]float64{}
	in := bufio.NewScanner(text)
	in.Buffer(make([]byte, 1<<16), 1<<20)
	for in.Scan() {
		line := in.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("no sample: %.80s", line)
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("no sample: %.80s", line)
		}
		all[line[:at]] = value
	}
	return all, in.Err()
}
