package stack

import (
	"net/url"
	"strings"

	"storefront.internal/deploy/stack/client"
)

// Edge adds an edge. More variables win over the ordinary ones.
func (d *Deployment) Edge(name string, more ...string) (*Process, error) {
	s, err := d.settingsOf(name, postgresName, redisName, kafkaName, engineName)
	if err != nil {
		return nil, err
	}
	return d.Add(Program{Name: name, Binary: "edge", Settings: s, Env: func(s Settings, a Address) []string {
		return append(s.Edge(a.Listen, a.Admin), more...)
	}})
}

// Relay adds an engine-relay.
func (d *Deployment) Relay(name string, more ...string) (*Process, error) {
	s, err := d.settingsOf(name, postgresName, kafkaName, engineName)
	if err != nil {
		return nil, err
	}
	return d.Add(Program{Name: name, Binary: "engine-relay", Settings: s, NoListen: true,
		Env: func(s Settings, a Address) []string {
			return append(s.Relay(a.Admin), more...)
		}})
}

// Control adds a control.
func (d *Deployment) Control(name string, more ...string) (*Process, error) {
	s, err := d.settingsOf(name, postgresName, redisName, providerName)
	if err != nil {
		return nil, err
	}
	return d.Add(Program{Name: name, Binary: "control", Settings: s,
		Env: func(s Settings, a Address) []string {
			return append(s.Control(a.Listen, a.Admin), more...)
		}})
}

// Engine adds the demo engine, which reads snapshots from the named control, and makes it the deployment's
// engine.
func (d *Deployment) Engine(control string, more ...string) (*Process, error) {
	snapshots, err := d.controlURL(engineName, control)
	if err != nil {
		return nil, err
	}
	p, err := d.Add(Program{Name: engineName, Binary: "demoengine", Settings: d.Settings, NoAdmin: true,
		Env: func(s Settings, a Address) []string {
			return append([]string{"DEMOENGINE_LISTEN=" + a.Listen, "DEMOENGINE_TOKEN=" + s.EngineSecret,
				"DEMOENGINE_SNAPSHOTS_URL=" + snapshots, "DEMOENGINE_SNAPSHOTS_TOKEN=" + s.EngineToken},
				more...)
		}})
	if err == nil {
		d.Settings.EngineURL = p.URL
	}
	return p, err
}

// Provider adds the fake provider, which hands webhooks to the named control, and makes it the deployment's
// provider.
func (d *Deployment) Provider(control string, more ...string) (*Process, error) {
	webhooks, err := d.controlURL(providerName, control)
	if err != nil {
		return nil, err
	}
	p, err := d.Add(Program{Name: providerName, Binary: "fakeprovider", Settings: d.Settings, NoAdmin: true,
		Env: func(s Settings, a Address) []string {
			return append([]string{"FAKEPROVIDER_LISTEN=" + a.Listen, "FAKEPROVIDER_APP_SECRET=" +
				s.AppSecret,
				"FAKEPROVIDER_CONTROL=" + webhooks, "FAKEPROVIDER_CONNECTOR_TOKENS=" + s.ConnectorTokens()},
				more...)
		}})
	if err == nil {
		d.Settings.ProviderURL = p.URL
	}
	return p, err
}

// DemoShop adds the demo shop of a connection, which calls the named edge and control.
func (d *Deployment) DemoShop(edge, control string, shop client.Storefront) (*Process, error) {
	edgeURL, err := d.URL(edge)
	if err != nil {
		return nil, err
	}
	controlURL, err := d.URL(control)
	if err != nil {
		return nil, err
	}
	proxy, err := d.address("demoshop-edge")
	if err != nil {
		return nil, err
	}
	return d.Add(Program{Name: "demoshop", Binary: "demoshop", Settings: d.Settings, NoAdmin: true,
		Env: func(s Settings, a Address) []string {
			return []string{"DEMOSHOP_LISTEN=" + a.Listen, "DEMOSHOP_EDGE_LISTEN=" + proxy.Listen,
				"DEMOSHOP_EDGE_URL=" + edgeURL, "DEMOSHOP_CONTROL_URL=" + controlURL,
				"DEMOSHOP_ENGINE_URL=" + s.EngineURL, "DEMOSHOP_CONNECTION_ID=" + shop.ConnectionID,
				"DEMOSHOP_STOREFRONT_KEY=" + shop.Key, "DEMOSHOP_CONNECTOR_TOKEN=" + s.ConnectorToken,
				"DEMOSHOP_BACKEND_TOKEN=" + s.BackendToken}
		}})
}

// The names by which links call what a service calls.
const (
	postgresName = "postgres"
	redisName    = "redis"
	kafkaName    = "kafka"
	engineName   = "engine"
	providerName = "provider"
)

func (d *Deployment) controlURL(from, control string) (string, error) {
	target, err := d.URL(control)
	if err != nil {
		return "", err
	}
	return d.via(from, control, target)
}

// settingsOf are the settings of one process: the addresses of what it calls lie behind links of its own,
// when there are links.
func (d *Deployment) settingsOf(name string, targets ...string) (s Settings, err error) {
	s = d.Settings
	if !d.Config.Links {
		return s, nil
	}
	for _, target := range targets {
		switch target {
		case postgresName:
			s.Database, err = d.via(name, target, s.Database)
		case redisName:
			s.RedisAddr, err = d.viaAddr(name, target, s.RedisAddr)
		case kafkaName: // where a broker has a listener for this process, the link to that exists
			s.KafkaBrokers, err = d.viaBrokers(name, s.KafkaBrokers)
		case engineName:
			s.EngineURL, err = d.via(name, target, s.EngineURL)
		case providerName:
			s.ProviderURL, err = d.via(name, target, s.ProviderURL)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func (d *Deployment) viaBrokers(from, brokers string) (string, error) {
	all := strings.Split(brokers, ",")
	var err error
	for i := range all {
		if all[i], err = d.viaAddr(from, brokerName(i, len(all)), all[i]); err != nil {
			return "", err
		}
	}
	return strings.Join(all, ","), nil
}

func (d *Deployment) viaAddr(from, to, address string) (string, error) {
	u, err := d.via(from, to, (&url.URL{Scheme: "tcp", Host: address}).String())
	return strings.TrimPrefix(u, "tcp://"), err
}
