package live

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dashboard is the part of a Grafana dashboard that the checks need.
type Dashboard struct {
	File       string `json:"-"`
	UID        string
	Templating struct{ List []struct{ Name, Type string } }
	Panels     []Panel
}

// Panel is a panel or, with the type "row", a heading.
type Panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct {
		Expr       string
		Datasource struct{ UID string }
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// MayBeEmpty says that the panel has no data on a healthy system. Its description gives the reason.
func (p Panel) MayBeEmpty() bool { return strings.HasPrefix(p.Description, "No data is normal: ") }

// Dashboards reads the dashboards of the chart, sorted by file name.
func Dashboards(root string) ([]Dashboard, error) {
	paths, err := filepath.Glob(filepath.Join(root, "helm/storefront/dashboards/*.json"))
	if err != nil {
		return nil, err
	}
	all := make([]Dashboard, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[i].File = filepath.Base(path)
	}
	return all, nil
}
