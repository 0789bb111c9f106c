package localstack

import (
	"fmt"
	"io"
	"strings"
)

// demo is the content of demo.env in its order: what a person or a program needs to use the stack. Empty
// values are left out.
type demo [][2]string

func (d demo) file() []byte {
	var b strings.Builder
	for _, pair := range d {
		if pair[1] != "" {
			fmt.Fprintf(&b, "%s=%s\n", pair[0], pair[1])
		}
	}
	return []byte(b.String())
}

func (d demo) get(name string) string {
	for _, pair := range d {
		if pair[0] == name {
			return pair[1]
		}
	}
	return ""
}

const standInBanner = `
  ************************************************************************************************
  **  Redis and Kafka: a STAND-IN named above runs inside this program.                         **
  **  The in-process Redis FORGETS everything at Ctrl-C (the in-process Kafka keeps its data).  **
  **  A stand-in says nothing about speed or faults: BACKENDS=real make run uses real ones.     **
  ************************************************************************************************
`

const commands = `
  1. Ask for a recommendation:

DECISION=$(curl -s '{BASE_URL}/v1/connections/{CONNECTION_ID}/recommendations' \
  -H 'Authorization: Bearer {STOREFRONT_KEY}' -H 'Content-Type: application/json' \
  -d '{"placement":"home"}' \
  | tee /dev/stderr | sed 's/.*"decision_id":"\([^"]*\)".*/\1/'); echo

  2. Put one of its items into the cart, twice (accepted; run it again: duplicate):

curl -s '{BASE_URL}/v1/connections/{CONNECTION_ID}/storefront-signals' \
  -H 'Authorization: Bearer {STOREFRONT_KEY}' -H 'Content-Type: application/json' \
  -d '{"signals":[{"signal_id":"sig_'"${DECISION:-{DECISION_ID}}"'","type":"add_to_cart",
    "occurred_at":"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'","decision_id":"'"${DECISION:-{DECISION_ID}}"'",
    "item_id":"{ITEM_ID}","quantity":2}]}'; echo

  3. See, a second later, the cart line that the engine got:

curl -s '{ENGINE_URL}/debug/interactions?since=0'; echo

  4. Read the item as a storefront does (the bootstrap run of the fake shop loaded it):

curl -s '{BASE_URL}/v1/catalog/items/{ITEM_ID}' \
  -H 'Authorization: Bearer {STOREFRONT_KEY}'; echo

  5. Change it at the provider, let the provider send its webhook, and read what shoppers see now:

curl -s -o /dev/null -X PUT '{PROVIDER_URL}/debug/products/{ITEM_EXTERNAL_ID}' \
  -d '{"name":{"es":"Cambiado a las '"$(date +%T)"'"}}' && \
  curl -s '{PROVIDER_URL}/debug/webhooks' \
  -d '{"topic":"product/updated","external_id":"{ITEM_EXTERNAL_ID}"}' && sleep 2 && \
  curl -s '{BASE_URL}/v1/catalog/items/{ITEM_ID}' \
  -H 'Authorization: Bearer {STOREFRONT_KEY}'; echo
`

// printBanner prints how to use the stack. The second command falls back to a Decision that was made for the
// banner, so that each command works by itself.
func printBanner(w io.Writer, d demo, decisionID string, standIns bool, envFile string) {
	if standIns {
		fmt.Fprint(w, standInBanner)
	}
	fmt.Fprintf(w, "\n  Storefront is ready. Ctrl-C stops it; what PostgreSQL and Kafka hold is kept.\n\n")
	for _, name := range []string{"DEMO_SHOP_URL", "BASE_URL", "INTERNAL_BASE_URL", "ENGINE_URL",
		"PROVIDER_URL", "EDGE_ADMIN_URL", "CONTROL_ADMIN_URL", "RELAY_ADMIN_URL"} {
		fmt.Fprintf(w, "  %-18s %s\n", name, d.get(name))
	}
	fmt.Fprintf(w, "  everything else    %s\n", envFile)
	text := strings.ReplaceAll(commands, "{DECISION_ID}", decisionID)
	for _, pair := range d {
		text = strings.ReplaceAll(text, "{"+pair[0]+"}", pair[1])
	}
	fmt.Fprintln(w, text)
}
