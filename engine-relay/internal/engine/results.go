package engine

import (
	"encoding/json"
	"errors"

	"storefront.internal/engine-relay/internal/deliver"
)

// parseResults reads the answer to n interactions. An index that is missing, that has two different statuses,
// or whose status is unknown has NoResult. An index beyond n is ignored. Anything but a list of results is an
// error.
func parseResults(body []byte, n int) ([]deliver.Result, error) {
	var answer struct {
		Results []struct {
			Index  *int   `json:"index"`
			Status string `json:"status"`
			Reason string `json:"reason"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("the engine's answer is not a list of results")
	}
	results := make([]deliver.Result, n)
	seen := make([]bool, n)
	for _, r := range answer.Results {
		if r.Index == nil || *r.Index < 0 || *r.Index >= n {
			continue
		}
		i := *r.Index
		status := statusOf(r.Status)
		if seen[i] && results[i].Status != status {
			status = deliver.NoResult
		}
		seen[i] = true
		results[i] = deliver.Result{Status: status, Reason: r.Reason}
	}
	return results, nil
}

func statusOf(s string) deliver.ResultStatus {
	switch s {
	case "created":
		return deliver.Created
	case "exists":
		return deliver.Exists
	case "rejected":
		return deliver.Rejected
	default:
		return deliver.NoResult
	}
}
