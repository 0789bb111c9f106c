package collect

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
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

// Goroutines answers how many each process has now.
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

func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return samples(answer.Body)
}

// samples reads the text format: name, labels, value. Our processes write no timestamps.
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
