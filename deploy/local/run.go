package main

import (
	"context"
	"errors"
)

func run(context.Context) error { return errors.New("not yet") }
