package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/stack"
)

// N7: fill the disk of PostgreSQL or Kafka. Both may exit; they are restarted when there is space again.
func (n *Nemesis) fillDisk() (Operation, bool) {
	disk, users := n.Topology.PostgresDisk, []*stack.Process{n.Topology.Postgres}
	if n.random.IntN(2) == 0 {
		disk, users = n.Topology.KafkaDisk, n.Topology.Brokers
	}
	if !disk.CanFill() {
		return Operation{}, false
	}
	f := fault{func(context.Context) error { return disk.Fill() }, func(ctx context.Context) error {
		if err := disk.Free(); err != nil {
			return err
		}
		var errs []error
		for _, p := range users {
			errs = append(errs, p.Start(ctx))
		}
		return errors.Join(errs...)
	}}
	var names []string
	for _, p := range users {
		names = append(names, p.Name)
	}
	return Operation{Fault: f, Detail: "full disk of " + strings.Join(names, ", "), Targets: names,
		Duration: n.randomDuration(3*time.Second, 12*time.Second)}, true
}

// N8: make Redis lose its data, run out of memory or hang.
func (n *Nemesis) redis() (Operation, bool) {
	if !n.Redis {
		return Operation{}, false
	}
	x := n.Topology
	command := func(args ...any) func(context.Context) error {
		return func(ctx context.Context) error {
			c := redis.NewClient(&redis.Options{Addr: x.Settings.RedisAddr, ReadTimeout: 20 * time.Second})
			defer func() { _ = c.Close() }()
			return c.Do(ctx, args...).Err()
		}
	}
	o := Operation{Targets: []string{x.Redis.Name}}
	switch n.random.IntN(4) {
	case 0:
		o.Detail, o.Duration = "FLUSHALL", time.Second
		o.Fault = fault{inject: command("FLUSHALL")}
	case 1:
		o.Detail, o.Duration = "maxmemory 8 MB, noeviction", n.randomDuration(3*time.Second, 12*time.Second)
		o.Fault = fault{command("CONFIG", "SET", "maxmemory", "8mb"),
			command("CONFIG", "SET", "maxmemory", "0")}
	case 2:
		o.Detail, o.Duration = "CLIENT PAUSE", n.randomDuration(2*time.Second, 12*time.Second)
		o.Fault = fault{command("CLIENT", "PAUSE", o.Duration.Milliseconds(), "ALL"),
			command("CLIENT", "UNPAUSE")}
	default:
		o.Detail, o.Duration = "failover to an empty Redis", n.randomDuration(0, 5*time.Second)
		o.Fault = fault{func(ctx context.Context) error {
			return errors.Join(x.Redis.Kill(ctx),
				x.ClearRedis())
		}, x.Redis.Start}
	}
	return o, true
}

// restart stops a process with a signal and starts it again.
func restart(p *stack.Process, sig syscall.Signal) fault {
	return fault{func(ctx context.Context) error { return p.StopWith(ctx, sig) }, p.Start}
}

const terminateSessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
	"WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

// rejectRows makes PostgreSQL reject the rows of some signals: with an error of the server (disk full), which
// ends, or with an error of the value, for which the relay parks the signal. It locks the parent table first,
// as the sink does. A trigger alone would lock the tables in another order and cause a deadlock.
const (
	rejectRows = `CREATE OR REPLACE FUNCTION public.faults_reject() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'a fault' USING ERRCODE = '%s'; END $$;
	BEGIN; LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE;
	CREATE OR REPLACE TRIGGER faults_reject BEFORE INSERT ON relay.signals FOR EACH ROW
		WHEN (NEW.signal_id LIKE 'sig_%%%x') EXECUTE FUNCTION public.faults_reject();
	COMMIT`
	acceptRows = "BEGIN; LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE; " +
		"DROP TRIGGER IF EXISTS faults_reject ON relay.signals; COMMIT"
)

// N9: restart PostgreSQL, terminate its sessions, lock a table or reject rows.
func (n *Nemesis) postgres() (Operation, bool) {
	x := n.Topology
	url := x.Settings.Database
	exec := func(sql string) func(context.Context) error {
		return func(ctx context.Context) error {
			return retry(ctx, func(ctx context.Context) error {
				return stack.Exec(ctx, url,
					"SET lock_timeout = '5s'; "+sql)
			})
		}
	}
	o := Operation{Targets: []string{x.Postgres.Name}}
	switch n.random.IntN(6) {
	case 0:
		o.Detail, o.Duration = "immediate restart of PostgreSQL", n.randomDuration(0, 4*time.Second)
		o.Fault = restart(x.Postgres, syscall.SIGQUIT)
	case 1:
		o.Detail, o.Duration = "fast restart of PostgreSQL", n.randomDuration(0, 4*time.Second)
		o.Fault = restart(x.Postgres, syscall.SIGINT)
	case 2:
		o.Detail, o.Duration, o.Fault = "all sessions are terminated", n.randomDuration(0,
			time.Second), fault{inject: exec(terminateSessions)}
	case 3:
		table := pick(n, "relay.signals", "relay.cart_lines", "delivery.entries", "control.api_keys",
			"control.entities")
		o.Detail, o.Duration = "a lock on "+table, n.randomDuration(3*time.Second, 20*time.Second)
		o.Fault = &tableLock{url: url, table: table}
	default:
		code := pick(n, "53100", "22023")
		o.Detail, o.Duration = "the rows of some signals are rejected with "+code,
			n.randomDuration(2*time.Second, 10*time.Second)
		o.Fault = fault{exec(fmt.Sprintf(rejectRows, code, n.random.IntN(16))), exec(acceptRows)}
	}
	return o, true
}

// tableLock holds a lock on a table.
type tableLock struct {
	url, table string
	conn       *pgx.Conn
}

func (f *tableLock) Inject(ctx context.Context) (err error) {
	if f.conn, err = pgx.Connect(ctx, f.url); err != nil {
		return err
	}
	_, err = f.conn.Exec(ctx,
		"SET lock_timeout = '10s'; BEGIN; LOCK TABLE "+f.table+" IN ACCESS EXCLUSIVE MODE")
	return err
}

func (f *tableLock) Heal(ctx context.Context) error {
	if f.conn != nil {
		_ = f.conn.Close(ctx) // the server ends the transaction in any case
	}
	return nil
}
