package nemesis

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"storefront.internal/deploy/faults/topology"
)

// N7: a full disk below PostgreSQL or Kafka. Either may end by itself; its keeper brings it back, in vain until there is room.
type fill struct {
	disk *topology.Disk
	unit *topology.Unit
}

func (f fill) Inject(context.Context) error { return f.disk.Fill() }

func (f fill) Heal(ctx context.Context) error {
	if err := f.disk.Free(); err != nil {
		return err
	}
	return f.unit.Start(ctx)
}

func (n *Nemesis) fill() (Case, bool) {
	x := n.Topology
	f := fill{x.PostgresDisk, x.Postgres}
	if n.random.IntN(2) == 0 {
		f = fill{x.KafkaDisk, x.Kafka}
	}
	if !f.disk.CanFill() {
		return Case{}, false
	}
	return Case{Fault: f, Detail: "no room on the disk of " + f.unit.Name, Touches: []string{f.unit.Name}, Hold: n.between(3*time.Second, 12*time.Second)}, true
}

// N8: Redis forgets, has no room, stands still, or is replaced by an empty one.
type redisFault struct {
	addr string
	do   func(context.Context, *redis.Client) error
	undo func(context.Context, *redis.Client) error
}

func (f redisFault) Inject(ctx context.Context) error { return f.ask(ctx, f.do) }
func (f redisFault) Heal(ctx context.Context) error   { return f.ask(ctx, f.undo) }

func (f redisFault) ask(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	if do == nil {
		return nil
	}
	c := redis.NewClient(&redis.Options{Addr: f.addr, ReadTimeout: 20 * time.Second})
	defer func() { _ = c.Close() }() // nothing is lost with the connection
	return do(ctx, c)
}

// replace is a failover to an empty replica.
type replace struct{ x *topology.Topology }

func (f replace) Inject(ctx context.Context) error {
	return errors.Join(f.x.Redis.Kill(ctx), f.x.RedisForgets())
}
func (f replace) Heal(ctx context.Context) error { return f.x.Redis.Start(ctx) }

func (n *Nemesis) redis() (Case, bool) {
	if !n.Redis {
		return Case{}, false
	}
	x := n.Topology
	c := Case{Touches: []string{x.Redis.Name}}
	f := redisFault{addr: x.RedisAddr()}
	switch n.random.IntN(4) {
	case 0:
		c.Detail, c.Hold = "FLUSHALL", time.Second
		f.do = func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() }
	case 1:
		c.Detail, c.Hold = "maxmemory 8 MB, noeviction", n.between(3*time.Second, 12*time.Second)
		f.do = func(ctx context.Context, c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", "8mb").Err() }
		f.undo = func(ctx context.Context, c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", "0").Err() }
	case 2:
		c.Hold = n.between(2*time.Second, 12*time.Second)
		pause := c.Hold
		c.Detail = "CLIENT PAUSE"
		f.do = func(ctx context.Context, c *redis.Client) error {
			return c.Do(ctx, "CLIENT", "PAUSE", pause.Milliseconds(), "ALL").Err()
		}
		f.undo = func(ctx context.Context, c *redis.Client) error { return c.Do(ctx, "CLIENT", "UNPAUSE").Err() }
	default:
		c.Detail, c.Hold, c.Fault = "failover to an empty Redis", n.between(0, 5*time.Second), replace{x}
		return c, true
	}
	c.Fault = f
	return c, true
}

// N9: PostgreSQL's own ways to fail.
type pgFault struct {
	url      string
	do, undo string
}

func (f pgFault) Inject(ctx context.Context) error { return f.exec(ctx, f.do) }
func (f pgFault) Heal(ctx context.Context) error   { return f.exec(ctx, f.undo) }

func (f pgFault) exec(ctx context.Context, sql string) error {
	if sql == "" {
		return nil
	}
	return again(ctx, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, f.url)
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, "SET lock_timeout = '5s'; "+sql)
		return errors.Join(err, c.Close(ctx))
	})
}

// again tries until it succeeds: other faults may be in the way.
func again(ctx context.Context, do func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := do(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if e := topology.Sleep(ctx, 300*time.Millisecond); e != nil {
			return fmt.Errorf("%w (last: %w)", e, err)
		}
	}
}

// locked holds a lock on a table that everybody writes.
type locked struct {
	url, table string
	conn       *pgx.Conn
}

func (f *locked) Inject(ctx context.Context) (err error) {
	if f.conn, err = pgx.Connect(ctx, f.url); err != nil {
		return err
	}
	_, err = f.conn.Exec(ctx, "SET lock_timeout = '10s'; BEGIN; LOCK TABLE "+f.table+" IN ACCESS EXCLUSIVE MODE")
	return err
}

func (f *locked) Heal(ctx context.Context) error {
	if f.conn == nil {
		return nil
	}
	_ = f.conn.Close(ctx) // the server ends the transaction with the connection, however that ends
	return nil
}

// restarted is an orderly or immediate stop, and a start.
type restarted struct {
	unit *topology.Unit
	sig  syscall.Signal
}

func (f restarted) Inject(ctx context.Context) error { return f.unit.Stop(ctx, f.sig) }
func (f restarted) Heal(ctx context.Context) error   { return f.unit.Start(ctx) }

const terminateAll = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

// refusing makes the database refuse some signals' rows, with a code that says that the server is to blame. The table is locked
// first, from its root on, as whoever writes to it does: a trigger's own locks come in another order, and the deadlock would be
// of the nemesis's making.
const (
	refusing = `CREATE OR REPLACE FUNCTION public.faults_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'a fault' USING ERRCODE = '53100'; END $$;
	BEGIN; LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE;
	CREATE OR REPLACE TRIGGER faults_refuse BEFORE INSERT ON relay.signals FOR EACH ROW WHEN (NEW.signal_id LIKE 'sig_%%%x') EXECUTE FUNCTION public.faults_refuse();
	COMMIT`
	relenting = "BEGIN; LOCK TABLE relay.signals IN ACCESS EXCLUSIVE MODE; DROP TRIGGER IF EXISTS faults_refuse ON relay.signals; COMMIT"
)

func (n *Nemesis) postgres() (Case, bool) {
	x := n.Topology
	c := Case{Touches: []string{x.Postgres.Name}}
	url := x.DatabaseURL()
	switch n.random.IntN(5) {
	case 0:
		c.Detail, c.Hold = "PostgreSQL stops at once and starts again", n.between(0, 4*time.Second)
		c.Fault = restarted{x.Postgres, syscall.SIGQUIT}
	case 1:
		c.Detail, c.Hold = "PostgreSQL stops in order and starts again", n.between(0, 4*time.Second)
		c.Fault = restarted{x.Postgres, syscall.SIGINT}
	case 2:
		c.Detail, c.Hold, c.Fault = "every session is ended", n.between(0, time.Second), pgFault{url: url, do: terminateAll}
	case 3:
		table := pick(n, "relay.signals", "relay.cart_lines", "delivery.entries", "control.api_keys", "control.entities")
		c.Detail, c.Hold, c.Fault = "a lock is held on "+table, n.between(3*time.Second, 20*time.Second), &locked{url: url, table: table}
	default:
		c.Detail, c.Hold = "some signals' rows are refused", n.between(2*time.Second, 10*time.Second)
		c.Fault = pgFault{url: url, do: fmt.Sprintf(refusing, n.random.IntN(16)), undo: relenting}
	}
	return c, true
}
