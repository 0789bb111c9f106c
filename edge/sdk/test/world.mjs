// A world for the SDK: pages (tabs) that share a storage, a clock that a test moves, and an edge whose answers the
// test scripts. A page runs the built script in a realm of its own, so it can be closed or killed like a tab.
import { readFileSync } from 'node:fs';
import { webcrypto } from 'node:crypto';
import vm from 'node:vm';

export const dist = new URL(process.env.SDK_DIST ?? '../dist/', import.meta.url);

const read = (name) => readFileSync(new URL(name, dist), 'utf8');
const START = Date.UTC(2026, 10, 22, 12);

// turn lets promises settle.
const turn = async () => {
  for (let i = 0; i < 30; i++) await null;
  await new Promise((f) => setImmediate(f));
};

export class World {
  now = START;
  serverSkew = 0;
  timers = [];
  requests = []; // of every page
  script = []; // the next answers of operation 1; when it is empty, the edge records
  counted = new Map(); // signal id → how often it was accepted
  rejects = new Set();
  data = new Map();
  pages = [];
  logs = [];

  // advance moves the clock and runs what is due on the way.
  async advance(ms) {
    const end = this.now + ms;
    await turn();
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end && !t.page.frozen).sort((a, b) => a.at - b.at || a.n - b.n)[0];
      if (!next) break;
      this.now = Math.max(this.now, next.at);
      if (next.every) next.at += next.every;
      else this.timers.splice(this.timers.indexOf(next), 1);
      if (!next.page.gone) next.f();
      await turn();
    }
    this.now = end;
    await turn();
  }

  page(options = {}) {
    const page = new Page(this, options);
    this.pages.push(page);
    return page;
  }

  // tell fires storage events in all pages but the one that wrote.
  async tell(writer, change) {
    await null;
    for (const page of this.pages) if (page !== writer && !page.gone && !page.frozen) page.fire('storage', change);
  }

  signalRequests() {
    return this.requests.filter((r) => r.url.includes('/storefront-signals'));
  }

  ids() {
    return this.signalRequests().map((r) => r.signals.map((s) => s.signal_id));
  }

  // What the edge answers to a request that the script does not name.
  answer(request) {
    if (request.url.includes('/recommendations')) return this.decision(request);
    if (request.url.includes('/catalog/items/')) return { status: 404, body: '{"code":"not_found"}' };
    const results = request.signals.map((s, index) => {
      if (this.rejects.has(s.signal_id)) return { index, signal_id: s.signal_id, status: 'rejected', reason: 'unknown_decision' };
      const before = this.counted.get(s.signal_id) ?? 0;
      if (!before) this.counted.set(s.signal_id, 1);
      return { index, signal_id: s.signal_id, status: before ? 'duplicate' : 'accepted' };
    });
    return { status: 202, body: JSON.stringify({ results }) };
  }

  decision(request) {
    const { limit = 3, placement } = JSON.parse(request.body);
    const items = Array.from({ length: limit }, (_, position) => ({ position, item_id: 'itm_' + position, variant_id: 'var_' + position }));
    return {
      status: 200,
      body: JSON.stringify({
        decision_id: 'dec_' + placement, placement, served_at: new Date(this.now + this.serverSkew).toISOString(), source: 'engine', items,
      }),
    };
  }
}

class FakeStorage {
  constructor(data, page, changed = () => {}) {
    return new Proxy({}, {
      get: (_, k) => (page.refuse(), data.get(k)),
      set: (_, k, v) => (page.refuse(true), data.set(k, String(v)), changed(k, String(v)), true),
      deleteProperty: (_, k) => (page.refuse(), data.delete(k) && changed(k, null), true),
      ownKeys: () => (page.refuse(), [...data.keys()]),
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    });
  }
}

class Page {
  gone = false;
  frozen = false;
  storageFails = false; // true: every access throws; 'set': writing throws
  keepalive = 0;
  beacons = [];

  constructor(world, { gpc, prerendering, skew = 0, session = new Map(), noKeepalive, url = 'https://shop.example/p/1?mail=a@b.c#x' } = {}) {
    this.world = world;
    this.skew = skew;
    this.window = new EventTarget();
    const document = { hidden: false, prerendering: !!prerendering, currentScript: null };
    this.document = document;
    const began = world.now;
    const page = this;
    const time = (g, ms = 0, every, ...args) => {
      const f = () => g(...args);
      const t = { n: world.timers.length + Math.random(), at: world.now + Math.max(0, ms), f, page: this, every, id: ++world.lastTimer || (world.lastTimer = 1) };
      world.timers.push(t);
      return t.id;
    };
    const clear = (id) => { world.timers = world.timers.filter((t) => t.id !== id); };
    class PageDate extends Date {
      constructor(...a) { a.length ? super(...a) : super(world.now + page.skew); }
      static now() { return world.now + page.skew; }
    }
    class FakeRequest {}
    if (!noKeepalive) Object.defineProperty(FakeRequest.prototype, 'keepalive', { get() {}, configurable: true });
    this.navigator = {
      onLine: true, languages: ['es-AR', 'en'], globalPrivacyControl: gpc,
      sendBeacon: (to, body) => {
        this.beacons.push(body);
        world.requests.push(this.record(to, { body, beacon: true }));
        world.answer(world.requests.at(-1));
        return true;
      },
    };
    this.global = vm.createContext({
      document, location: new URL(url), navigator: this.navigator, crypto: webcrypto, TextEncoder, AbortController, Request: FakeRequest,
      URL, Intl, btoa, EventTarget, Event, innerWidth: 1280, innerHeight: 720, devicePixelRatio: 2,
      console: {
        log() {}, debug: (...a) => world.logs.push(['debug', ...a]), warn: (...a) => world.logs.push(['warn', ...a]),
        error: (...a) => world.logs.push(['error', ...a]),
      },
      performance: { timeOrigin: began + skew, now: () => world.now - began },
      Date: PageDate, setTimeout: (f, ms, ...args) => time(f, ms, 0, ...args), clearTimeout: clear, setInterval: (f, ms) => time(f, ms, ms), clearInterval: clear,
      addEventListener: this.window.addEventListener.bind(this.window),
      IntersectionObserver: fakeObserver(this), localStorage: new FakeStorage(world.data, this, (key, newValue) => world.tell(this, { key, newValue })), sessionStorage: new FakeStorage(session, this),
      fetch: (u, init) => this.fetch(u, init),
    });
    this.global.window = this.global;
    vm.runInContext('Math.random = () => 1', this.global); // the longest delays
    vm.runInContext(read('storefront.iife.js'), this.global);
  }

  refuse(writes) {
    if (this.storageFails === true || (writes && this.storageFails === 'set')) throw new Error('QuotaExceededError');
  }

  run(name) {
    vm.runInContext(read(name), this.global);
  }

  storefront(o = {}) {
    return this.global.Storefront.storefront({ baseUrl: 'https://edge.example/', connectionId: 'con_a', key: 'spk_k', ...o });
  }

  record(url, init) {
    const request = { url, at: this.world.now, page: this, ...init };
    if (url.includes('/storefront-signals')) request.signals = JSON.parse(init.body).signals;
    return request;
  }

  // fetch answers what the world's script says: {status, headers, body, after}, 'network', 'hang', or a function of
  // the request. keepalive bytes come back when the body was read, as in Chromium under no-store.
  async fetch(url, init = {}) {
    const { world } = this;
    const request = this.record(url, init);
    world.requests.push(request);
    const size = init.keepalive ? init.body.length : 0;
    if (this.keepalive + size > 64 << 10) {
      request.refused = true;
      throw new TypeError('keepalive quota');
    }
    this.keepalive += size;
    let said = request.signals && world.script.length ? world.script.shift() : undefined;
    if (typeof said === 'function') said = said(request);
    said ??= world.answer(request);
    const aborted = new Promise((_, no) => init.signal?.addEventListener('abort', () => no(new Error('AbortError'))));
    aborted.catch(() => {}); // nobody waits for it after the answer
    if (said === 'hang') return aborted;
    if (said === 'network') {
      this.keepalive -= size;
      throw new TypeError('network');
    }
    if (said.after) await Promise.race([aborted, new Promise((f) => { world.timers.push({ n: 0, at: world.now + said.after, f, page: { gone: false }, id: -1 }); })]);
    if (this.gone) return new Promise(() => {});
    const headers = new Map(Object.entries(said.headers ?? {}).map(([k, v]) => [k.toLowerCase(), v]));
    return {
      status: said.status, ok: said.status < 300, headers: { get: (k) => headers.get(k.toLowerCase()) ?? null },
      text: async () => {
        this.keepalive -= size;
        if (said.cut) throw new TypeError('cut');
        return said.body ?? '';
      },
    };
  }

  fire(type, more = {}) {
    this.window.dispatchEvent(Object.assign(new Event(type), more));
  }

  hide() {
    this.document.hidden = true;
    this.fire('visibilitychange');
  }

  show() {
    this.document.hidden = false;
    this.fire('visibilitychange');
  }

  // close ends the page as a navigation does; kill ends it without a word.
  close() {
    this.hide();
    this.fire('pagehide', { persisted: false });
    this.kill();
  }

  kill() {
    this.gone = true;
    this.world.timers = this.world.timers.filter((t) => t.page !== this);
  }

  freeze() {
    this.hide();
    this.fire('pagehide', { persisted: true });
    this.frozen = true;
  }

  thaw() {
    this.frozen = false;
    this.document.hidden = false;
    this.fire('pageshow', { persisted: true });
  }

  // look shows an element to the page's observers.
  look(intersectionRatio, height = 100) {
    for (const f of this.observers ?? []) f([{ intersectionRatio, intersectionRect: { height } }]);
  }
}

function fakeObserver(page) {
  page.observers = new Set();
  return class {
    constructor(f) { this.f = f; }
    observe() { page.observers.add(this.f); }
    disconnect() { page.observers.delete(this.f); }
  };
}
