package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"storefront.internal/shared/fault"
)

func TestTranslateTellsNoValues(t *testing.T) {
	t.Parallel()
	f := func(err error, want fault.Code) {
		t.Helper()
		got := Translate("do it", err)
		if code := fault.From(got).Code; code != want {
			t.Errorf("%v became %s, want %s", err, code, want)
		}
		if strings.Contains(got.Error(), "canary") {
			t.Errorf("the error quotes a value: %v", got)
		}
	}
	quoting := func(code string) error {
		return &pgconn.PgError{Code: code, Message: "canary", Detail: "Key (x)=(canary)", Where: "canary",
			Hint: "canary", TableName: "t"}
	}
	f(quoting("23505"), fault.InternalError)
	f(quoting("42501"), fault.InternalError)
	f(quoting("57P01"), fault.ServiceUnavailable)
	f(quoting("40001"), fault.ServiceUnavailable)
	f(context.DeadlineExceeded, fault.ServiceUnavailable)
	f(errors.New("x"), fault.InternalError)
	f(fault.New(fault.StoreConnected, ""), fault.StoreConnected)
	if Translate("do it", nil) != nil {
		t.Error("nil became an error")
	}
}
