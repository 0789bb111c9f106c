package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"storefront.internal/deploy/local/process"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/stack/client"
	"storefront.internal/deploy/stack/link"
)

// Config of a deployment.
type Config struct {
	Settings Settings
	// Supervised processes that end by themselves are started again.
	Supervised bool
	// Links puts a proxy on every way between two processes, which can delay and cut it.
	Links bool
	// LogDir gets a file for each process, unless Log opens the log of a process.
	LogDir string
	Log    func(name string) io.Writer
	// Addresses are fixed listening addresses by process name; others are claimed.
	Addresses map[string]Address
	Say       func(format string, args ...any)
}

// Address is where a process listens.
type Address struct{ Listen, Admin string }

// Deployment is a set of processes that work together.
type Deployment struct {
	Config
	// The stores are nil unless StartStores started them.
	Postgres, Redis *Process
	Brokers         []*Process // of Kafka

	life      context.Context // the processes' own: it ends at Close
	stop      context.CancelFunc
	proxies   *link.Set
	mu        sync.Mutex
	links     map[string]*link.Link // by "from>to"
	addresses map[string]Address
	processes []*Process // in the order in which they were added
	logs      []io.Closer
}

// New makes a deployment without processes. Its processes outlive ctx; Close ends them.
func New(ctx context.Context, cfg Config) *Deployment {
	d := &Deployment{Config: cfg, proxies: link.NewSet(), links: map[string]*link.Link{},
		addresses: map[string]Address{}}
	d.life, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	if d.Say == nil {
		d.Say = func(string, ...any) {}
	}
	return d
}

// Program says how a process is started.
type Program struct {
	Name     string // unique in the deployment: it names the log and the links
	Binary   string
	Settings Settings
	Env      func(s Settings, a Address) []string
	NoAdmin  bool // it has no operations port
	NoListen bool // it listens at its operations port only
}

// Add adds a process; it does not run yet.
func (d *Deployment) Add(g Program) (*Process, error) {
	a, err := d.address(g.Name)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: g.Name, Admin: a.Admin, supervised: d.Supervised, say: d.Say}
	if g.NoAdmin {
		p.Admin = ""
	}
	if !g.NoListen {
		p.URL = "http://" + a.Listen
		if p.Via, err = d.via("clients", g.Name, p.URL); err != nil {
			return nil, err
		}
	}
	log, err := d.openLog(g.Name)
	if err != nil {
		return nil, err
	}
	p.launch = func(_ context.Context, binaries string, more []string) (*process.Process, error) {
		s := g.Settings
		if binaries != "" {
			s.Bin = binaries
		}
		return s.Start(g.Binary, environment(g.Env(s, a), more), log)
	}
	return d.adopt(p), nil
}

// environment adds variables to the ordinary ones. A name without a value takes the variable away.
func environment(ordinary, more []string) (env []string) {
	for _, v := range ordinary {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(more, name) {
			env = append(env, v)
		}
	}
	for _, v := range more {
		if strings.Contains(v, "=") {
			env = append(env, v)
		}
	}
	return env
}

// adopt makes a process part of the deployment.
func (d *Deployment) adopt(p *Process) *Process {
	newProcess(d.life, p)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.processes = append(d.processes, p)
	return p
}

// Processes are all processes, in the order in which they were added.
func (d *Deployment) Processes() []*Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*Process(nil), d.processes...)
}

// Close stops all processes, the last one first, and cuts the links. A process that does not end within the
// time is killed.
func (d *Deployment) Close(grace time.Duration) error {
	var errs []error
	all := d.Processes()
	for _, p := range all {
		_ = p.Resume()
	}
	d.stop() // no process is started any more
	for i := len(all) - 1; i >= 0; i-- {
		errs = append(errs, all[i].close(grace))
	}
	d.proxies.Close()
	for _, f := range d.logs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Internal is the internal surface of a control, called without a link.
func (d *Deployment) Internal(control *Process) client.Internal {
	return client.Internal{BaseURL: control.URL, ConnectorToken: d.Settings.ConnectorToken,
		BackendToken: d.Settings.BackendToken}
}

// URL is where a process listens or will listen, without a link.
func (d *Deployment) URL(name string) (string, error) {
	a, err := d.address(name)
	return "http://" + a.Listen, err
}

// address is the fixed address of a process, or one that is claimed at the first call.
func (d *Deployment) address(name string) (a Address, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, known := d.Addresses[name]
	if !known {
		a, known = d.addresses[name]
	}
	if known {
		return a, nil
	}
	if a.Listen, err = project.ClaimAddress(); err != nil {
		return a, err
	}
	a.Admin, err = project.ClaimAddress()
	d.addresses[name] = a
	return a, err
}

// Link is the link between two processes, or nil.
func (d *Deployment) Link(from, to string) *link.Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.links[from+">"+to]
}

// Links are all links by "from>to".
func (d *Deployment) Links() map[string]*link.Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]*link.Link, len(d.links))
	for name, l := range d.links {
		all[name] = l
	}
	return all
}

// OpenLink puts a link before an address, whether or not the deployment has links everywhere, and returns
// where it listens.
func (d *Deployment) OpenLink(from, to, upstream string) (*link.Link, error) {
	listen, err := project.ClaimAddress()
	if err != nil {
		return nil, err
	}
	l, err := d.proxies.Open(from+">"+to, listen, upstream)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.links[l.Name] = l
	return l, nil
}

// via is the URL by which a process calls another one: behind a link when the deployment has links.
func (d *Deployment) via(from, to, target string) (string, error) {
	if !d.Config.Links || target == "" {
		return target, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	l := d.Link(from, to)
	if l == nil {
		if l, err = d.OpenLink(from, to, u.Host); err != nil {
			return "", err
		}
	}
	u.Host = l.Addr()
	return u.String(), nil
}

// openLog opens the log of a process.
func (d *Deployment) openLog(name string) (io.Writer, error) {
	if d.Log != nil {
		return d.Log(name), nil
	}
	if d.LogDir == "" {
		return io.Discard, nil
	}
	f, err := os.OpenFile(d.LogPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.logs = append(d.logs, f)
	return f, nil
}

// LogPath is the file to which a process logs.
func (d *Deployment) LogPath(name string) string { return filepath.Join(d.LogDir, name+".log") }

// Start starts processes one after the other and waits until each is ready.
func (d *Deployment) Start(ctx context.Context, within time.Duration, all ...*Process) error {
	for _, p := range all {
		if err := d.startOne(ctx, within, p); err != nil {
			return err
		}
	}
	return nil
}

func (d *Deployment) startOne(ctx context.Context, within time.Duration, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := p.Start(ctx); err != nil {
		return err
	}
	if err := p.Ready(ctx); err != nil {
		return fmt.Errorf("%w (its log: %s)", err, d.logName(p.Name))
	}
	return nil
}

func (d *Deployment) logName(name string) string {
	if d.LogDir == "" {
		return "not kept"
	}
	return d.LogPath(name)
}
