# Tests the public API. With a trial key, it requests a Decision and sends a signal twice; the second is a duplicate only if
# the first was recorded. Without a key, it checks the health and an error response.
# (It must not contain two dollar signs in a row, which Kubernetes would replace.)
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# ask METHOD PATH [BODY]: sets status and body.
ask() {
  method=$1 url=$BASE_URL$2
  set -- ${3:+-H "Content-Type: application/json" --data "$3"}
  if [ -n "${STOREFRONT_KEY:-}" ]; then
    set -- "$@" -H "Authorization: Bearer $STOREFRONT_KEY"
  fi
  if [ -n "${INSECURE:-}" ]; then
    set -- "$@" --insecure
  fi
  answer=$(curl -sS --max-time 10 --retry 3 --retry-connrefused -X "$method" -w '\n%{http_code}' "$@" "$url") || fail "$method $url: no answer"
  status=$(printf '%s\n' "$answer" | tail -n 1)
  body=$(printf '%s\n' "$answer" | sed '$d')
}

ask GET /healthz
[ "$status" = 200 ] || fail "GET /healthz: $status $body"
echo "health: $body"

if [ -z "$CONNECTION_ID" ]; then
  ask POST /v1/connections/con_helmtest/storefront-signals '{"signals":[]}'
  [ "$status" = 401 ] || fail "signals without a key: $status instead of 401: $body"
  case "$body" in
  *"\"type\":\"$ERRORS_BASE"*) echo "refusal: $body" ;;
  *) fail "the problem's type does not begin with $ERRORS_BASE: $body" ;;
  esac
  echo "passed; set tests.connectionId and tests.existingSecret to send a signal, too"
  exit 0
fi

ask POST "/v1/connections/$CONNECTION_ID/recommendations" '{"placement":"helm-test","limit":1}'
[ "$status" = 200 ] || fail "recommendations: $status $body"
decision=$(printf '%s' "$body" | sed -n 's/.*"decision_id":"\([^"]*\)".*/\1/p')
[ -n "$decision" ] || fail "no decision_id in $body"
echo "decision: $decision"

id=sig_helmtest-$(date +%s)-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
signal="{\"signals\":[{\"signal_id\":\"$id\",\"type\":\"impression\",\"occurred_at\":\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\",\"decision_id\":\"$decision\"}]}"
for want in accepted duplicate; do
  ask POST "/v1/connections/$CONNECTION_ID/storefront-signals" "$signal"
  [ "$status" = 202 ] || fail "signals: $status $body"
  case "$body" in
  *"\"status\":\"$want\""*) echo "signal: $body" ;;
  *) fail "want $want: $body" ;;
  esac
done
echo "passed"
