// Package files owns the list of what is generated and where it lies in the repository.
package files

import (
	"storefront.internal/deploy/observability/alerts"
	"storefront.internal/deploy/observability/dashboards"
)

// The paths of the rules and of their tests.
const (
	Rules      = "helm/storefront/rules/storefront.yaml"
	Tests      = "deploy/prometheus/causes_test.yaml"
	LevelTests = "deploy/prometheus/levels_test.yaml"
)

// Dashboards is the folder of the dashboards.
const Dashboards = "helm/storefront/dashboards/"

// All returns the text of every generated file by its path from the root of the repository.
func All() (map[string]string, error) {
	all := map[string]string{
		Rules:      alerts.RulesFile(),
		Tests:      alerts.TestsFile("../../" + Rules),
		LevelTests: alerts.LevelTestsFile("../../" + Rules),
	}
	for name, d := range dashboards.All() {
		text, err := d.JSON()
		if err != nil {
			return nil, err
		}
		all[Dashboards+name] = text
	}
	return all, nil
}
