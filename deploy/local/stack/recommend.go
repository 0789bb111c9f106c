package stack

import (
	"context"
	"fmt"
	"net/http"

	"storefront.internal/deploy/local/services"
)

// recommend asks the edge for a Decision, as a storefront would: proof that the public surface works, and the Decision of the
// banner's second command.
func recommend(ctx context.Context, d demo) (decisionID string, err error) {
	var answer struct {
		DecisionID string `json:"decision_id"`
	}
	path := "/v1/connections/" + d.get("CONNECTION_ID") + "/recommendations"
	err = services.Call(ctx, http.MethodPost, d.get("BASE_URL")+path, d.get("STOREFRONT_KEY"), map[string]string{"placement": "home"}, &answer)
	if err != nil {
		return "", fmt.Errorf("ask for a first recommendation: %w", err)
	}
	return answer.DecisionID, nil
}
