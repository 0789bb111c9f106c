// Package board owns the form of a Grafana dashboard: what of its JSON we use, and a layout that leaves no gaps and no overlaps.
//
// It refuses queries of its own: what is shown belongs to package dashboards.
package board

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Unit is how Grafana writes a value.
type Unit string

// The units that we use.
const (
	Short     Unit = "short"
	Seconds   Unit = "s"
	Bytes     Unit = "bytes"
	PerSecond Unit = "ops"
	Share     Unit = "percentunit"
	Timestamp Unit = "dateTimeAsIso"
)

// Query is one series of a panel. {@} in it stands for the selectors of the dashboard's variables: `metric{@}` or `metric{@,label="x"}`.
type Query struct{ Expr, Legend string }

// Panel is one panel; Stat shows the last value alone.
type Panel struct {
	Title       string
	Description string
	Unit        Unit
	Stat        bool
	Width       int // of 24; 8 when 0
	Queries     []Query
	Empty       string // why no data is right where nothing is wrong; "" means that there always is data under load
}

// Row is a heading and the panels below it.
type Row struct {
	Title  string
	Panels []Panel
}

// Dashboard is one dashboard.
type Dashboard struct {
	UID   string
	Title string
	About string
	Rows  []Row
}

const (
	width      = 24
	panelWidth = 8
	panelHigh  = 8
	statHigh   = 4
)

// selector is what {@} stands for.
const selector = `namespace=~"$namespace"`

// Expand writes a query as Grafana gets it.
func (q Query) Expand() string {
	return strings.NewReplacer("{@}", "{"+selector+"}", "{@,", "{"+selector+",").Replace(q.Expr)
}

// Panels are all panels of the dashboard, in order.
func (d Dashboard) Panels() []Panel {
	var all []Panel
	for _, r := range d.Rows {
		all = append(all, r.Panels...)
	}
	return all
}

// JSON is the dashboard as Grafana reads it.
func (d Dashboard) JSON() (string, error) {
	out, err := json.MarshalIndent(d.model(), "", "  ")
	if err != nil {
		return "", fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	return string(out) + "\n", nil
}

type object = map[string]any

func (d Dashboard) model() object {
	datasource := object{"type": "prometheus", "uid": "${datasource}"}
	return object{
		"uid": d.UID, "title": d.Title, "description": d.About, "tags": []string{"storefront"}, "schemaVersion": 39, "editable": true,
		"timezone": "utc", "refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "graphTooltip": 1,
		"links": []object{{"type": "dashboards", "title": "Storefront", "tags": []string{"storefront"}, "asDropdown": true, "keepTime": true, "includeVars": true}},
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0},
			{"name": "namespace", "label": "Namespace", "type": "query", "datasource": datasource, "refresh": 2, "includeAll": true, "multi": true, "allValue": ".*",
				"query":   object{"query": "label_values(storefront_build_info, namespace)", "refId": "namespace"},
				"current": object{"text": "All", "value": "$__all"}},
		}},
		"panels": d.place(datasource),
	}
}

// place lays the panels out: rows from top to bottom, panels from left to right.
func (d Dashboard) place(datasource object) []object {
	var out []object
	id, y := 0, 0
	for _, r := range d.Rows {
		id++
		out = append(out, object{"id": id, "type": "row", "title": r.Title, "collapsed": false, "panels": []object{}, "gridPos": grid(0, y, width, 1)})
		y++
		x, high := 0, 0
		for _, p := range r.Panels {
			w, h := p.size()
			if x+w > width {
				x, y, high = 0, y+high, 0
			}
			id++
			out = append(out, p.model(id, grid(x, y, w, h), datasource))
			x, high = x+w, max(high, h)
		}
		y += high
	}
	return out
}

func (p Panel) size() (w, h int) {
	w, h = p.Width, panelHigh
	if w == 0 {
		w = panelWidth
	}
	if p.Stat {
		h = statHigh
	}
	return w, h
}

func grid(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

func (p Panel) model(id int, at, datasource object) object {
	kind, options := "timeseries", object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
	if p.Stat {
		kind, options, custom = "stat", object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "area"}, object{}
	}
	var targets []object
	for i, q := range p.Queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "expr": q.Expand(), "legendFormat": q.Legend, "datasource": datasource, "instant": false, "range": true})
	}
	return object{
		"id": id, "type": kind, "title": p.Title, "description": p.Description, "gridPos": at, "datasource": datasource, "options": options, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": string(p.Unit), "min": 0, "custom": custom}, "overrides": []object{}},
	}
}
