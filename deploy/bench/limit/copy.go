package limit

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Table are rows of a table as COPY writes them, with their columns.
type Table struct {
	Name    string
	Columns string
	Rows    [][]byte
}

// Read reads the rows of a table; computed columns are left out.
func Read(ctx context.Context, url, name, columns, where string) (Table, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Table{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var text bytes.Buffer
	if _, err := conn.PgConn().CopyTo(ctx, &text,
		fmt.Sprintf("COPY (SELECT %s FROM %s%s) TO STDOUT", columns, name, where)); err != nil {
		return Table{}, err
	}
	t := Table{Name: name, Columns: columns, Rows: bytes.SplitAfter(text.Bytes(), []byte{'\n'})}
	t.Rows = t.Rows[:len(t.Rows)-1] // behind the last line's end
	return t, nil
}

// Copy writes the rows into tables of the same shape in so many transactions, each with its share of every
// table. It shows what PostgreSQL can do for a program that deduplicates, folds and joins nothing.
func Copy(ctx context.Context, url string, tables []Table, transactions int) (time.Duration, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	begun := time.Now()
	for i := range transactions {
		if err := copyShare(ctx, conn, tables, i, transactions); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), nil
}

func copyShare(ctx context.Context, conn *pgx.Conn, tables []Table, i, n int) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, t := range tables {
			share := t.Rows[len(t.Rows)*i/n : len(t.Rows)*(i+1)/n]
			if len(share) == 0 {
				continue
			}
			text := bytes.Join(share, nil)
			if _, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(text), "COPY "+t.Name+" ("+
				t.Columns+") FROM STDIN"); err != nil {
				return fmt.Errorf("%s (%s): %w", t.Name, strings.TrimSpace(t.Columns), err)
			}
		}
		return nil
	})
}
