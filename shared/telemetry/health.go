package telemetry

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Healthy asks the operations port of the service that runs in the same container whether it is ready. It is
// for health checks of images without a shell. The port is that of the setting ADMIN_LISTEN in the
// environment, or its default.
func Healthy(ctx context.Context, prefix string, environ []string) error {
	listen := ":9090"
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, prefix+"_ADMIN_LISTEN="); ok && value != "" {
			listen = value
		}
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%s_ADMIN_LISTEN: %w", prefix, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*checkTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort(host, port)+"/readyz?verbose", nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{
		Timeout: time.Second}).DialContext}}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 4096))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("not ready (%d):\n%s", res.StatusCode, text)
	}
	return err
}
