import { openClock } from './clock';
import { adoptDecision } from './decision';
import { derive, random } from './ident';
import { openMemory } from './memory';
import { openQueue } from './queue';
import { openSender } from './sender';
import { openStore } from './store';
import type { Store } from './store';
import type {
  CatalogAggregate, Consent, DecisionJSON, Line, Options, Result, SignalType, Stats, Storefront,
} from './types';
import type { Fields } from './signal';

const DELAY: Partial<Record<SignalType, number>> = { impression: 1000, dismiss: 1000, click: 0 };

/** Connects a page with the service. Nothing is sent before something is asked or told. */
export function storefront(o: Options): Storefront {
  const connection = o.connectionId;
  const prefix = 'sf1.' + connection + '.';
  const base = o.baseUrl.replace(/\/+$/, '') + '/v1/';
  const signals = base + 'connections/' + connection + '/storefront-signals';
  const doc = globalThis.document as Document | undefined;
  const life = new AbortController();
  const heard: Record<string, Set<(x: never) => void>> = { result: new Set(), drop: new Set(), state: new Set() };
  const counts = { requests: 0, resent: 0, accepted: 0, duplicate: 0, rejected: 0, dropped: 0, stopped: 0 };
  const items = new Map<string, [tag: string, doc: CatalogAggregate]>();
  let mode: Consent = 'full';
  let failed = false;
  let described = false; // a signal of this page view has `client`

  const tell = (event: string, x: Result | Stats) => heard[event]!.forEach((f) => Promise.resolve(x as never).then(f));
  const changed = () => tell('state', stats());
  const told = (r: Result) => {
    if (r.status in counts) counts[r.status as 'accepted']++;
    else {
      counts.dropped++;
      tell('drop', r);
    }
    if (o.debug) console.debug('storefront', r);
    tell('result', r);
  };

  const kept = o.storage !== 'memory';
  const local = openStore('localStorage', kept, () => {
    if (!failed) setTimeout(changed);
    failed = true;
  });
  const session = openStore('sessionStorage', kept, () => {});
  const clock = openClock(prefix, local, session);
  const memory = openMemory(prefix, local);
  const queue = openQueue(prefix, local, told);
  const sender = openSender(
    { url_: signals, key_: o.key, auto_: o.auth !== 'header' }, prefix, queue, local, session, counts, changed,
  );

  const stats = (): Stats => {
    const waiting = queue.waiting_().length;
    return {
      ...counts, waiting, inFlight: queue.entries_.size - waiting, consent: mode, pausedMs: sender.pause_(),
      storage: local.on_ && !failed ? 'local' : 'memory',
    };
  };

  const named = (store: Store, name: string, kind: string) => {
    const id = store.get_(prefix + name) ?? random(kind);
    store.set_(prefix + name, id);
    return id;
  };
  const own = () => {
    const id = typeof o.visitorId === 'function' ? o.visitorId() : o.visitorId;
    if (id && (!/^vis_[\w-]{1,64}$/.test(id) || /^vis\d{7,15}$/.test(id.replace(/[-_]/g, ''))))
      throw new TypeError('visitorId: vis_ and 1 to 64 of A-Z a-z 0-9 _ -, no e-mail address or telephone number');
    return id;
  };
  const visitor = () =>
    mode === 'full'
      ? { visitor_id: own() || named(local, 'visitor', 'vis_'), session_id: named(session, 'session', 'ses_') }
      : undefined;

  // The query of the page may hold what is nobody's business, so it stays here.
  const client = () => {
    described = true;
    return doc && {
      page_url: (location.origin + location.pathname).slice(0, 2048),
      languages: navigator.languages.slice(0, 20),
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      viewport: { width: innerWidth || 1, height: innerHeight || 1, pixel_ratio: devicePixelRatio },
    };
  };

  const mint = (type: SignalType, decision_id: string, fields: Fields, signal_id = random('sig_')): string => {
    if (mode === 'off') return '';
    if (!queue.entries_.has(signal_id)) {
      queue.add_(signal_id, JSON.stringify({
        signal_id, type, occurred_at: new Date(clock.now_()).toISOString(), decision_id, ...fields, visitor: visitor(),
        client: !described || type === 'impression' ? client() : undefined,
      }));
      sender.soon_(queue.entries_.size < 50 ? DELAY[type] ?? 50 : 0);
    }
    return signal_id;
  };

  const itemOf = (l: { itemId?: string; product?: string }) =>
    l.itemId ?? (l.product === undefined ? undefined : derive('itm', connection, 'product', l.product));
  const fieldsOf = (l: Line): Fields => ({
    item_id: itemOf(l),
    variant_id: l.variantId ??
      (l.variant === undefined ? undefined : derive('var', connection, 'variant', l.product ?? '', l.variant)),
    quantity: l.quantity,
  });
  const line = (type: SignalType, l: Line, more?: Fields): string => {
    const fields = { ...fieldsOf(l), ...more };
    const decision = l.decision ?? memory.decision_(fields.item_id!);
    if (!decision) return '';
    if (type === 'add_to_cart' && mode !== 'off') memory.remember_(fields.item_id!, decision);
    return mint(type, decision, fields);
  };

  const call = async (path: string, init: RequestInit, ms = 5000, outer?: AbortSignal): Promise<[Response, string]> => {
    if (mode === 'off') throw new Error('storefront: consent is off');
    const stop = new AbortController();
    const abort = () => stop.abort();
    if (outer?.aborted) abort();
    outer?.addEventListener('abort', abort);
    const timer = setTimeout(abort, ms);
    try {
      const answer = await fetch(base + path, {
        ...init, credentials: 'omit', signal: stop.signal,
        headers: { ...init.headers, Authorization: 'Bearer ' + o.key },
      });
      const text = await answer.text();
      if (answer.status >= 400 && answer.status !== 404 || answer.status === 404 && init.body)
        throw Object.assign(new Error(`storefront: ${answer.status} ${text.slice(0, 300)}`), { status: answer.status });
      return [answer, text];
    } finally {
      clearTimeout(timer);
      outer?.removeEventListener('abort', abort);
    }
  };
  const adopt = (json: DecisionJSON) =>
    adoptDecision(json, {
      impression_: (id) =>
        (doc as { prerendering?: boolean } | undefined)?.prerendering ? null : once(id),
      item_(type, id, fields) {
        if (type === 'click' && mode !== 'off') memory.remember_(fields.item_id!, id);
        return mint(type, id, fields);
      },
      add_: (l, position) => line('add_to_cart', l, { position }),
    });

  const seen = new Set<string>();
  const once = (decision: string) => {
    const id = derive('sig', connection, 'impression', decision);
    if (mode === 'off') return null;
    if (!seen.has(id)) mint('impression', decision, {}, id);
    seen.add(id);
    return id;
  };

  const tick = () => {
    if (!doc || (doc as { prerendering?: boolean }).prerendering) return;
    queue.tick_();
    if (queue.entries_.size) sender.soon_(0);
  };
  const wake = () => {
    queue.resume_();
    sender.resume_(true);
    tick();
  };

  const consent = (c: Consent) => {
    mode = c === 'full' && o.respectGPC !== false &&
      (globalThis.navigator as { globalPrivacyControl?: boolean } | undefined)?.globalPrivacyControl ? 'anonymous' : c;
    if (mode === 'full') local.on_ = session.on_ = kept;
    else {
      if (mode === 'off') queue.entries_.clear();
      else queue.tick_(true);
      [local, session].forEach((s) => {
        s.keys_().filter((key) => key.startsWith(prefix)).forEach(s.remove_);
        s.on_ = false;
      });
    }
    changed();
  };

  if (o.onResult) heard.result!.add(o.onResult as never);
  own();
  consent(o.consent ?? 'full');
  const listen = (on: EventTarget | undefined, type: string, f: (e: { persisted?: boolean }) => void) =>
    on?.addEventListener?.(type, f as EventListener, { signal: life.signal });
  listen(doc, 'visibilitychange', () => doc!.hidden && sender.leave_());
  listen(doc, 'resume', wake);
  listen(globalThis.window, 'pageshow', (e) => e.persisted && wake());
  listen(globalThis.window, 'online', () => sender.resume_(false));
  listen(globalThis.window, 'pagehide', () => {
    sender.leave_();
    queue.leave_();
  });
  const timers = doc ? [setTimeout(tick, 1000), setInterval(tick, 15e3)] : [];

  return {
    adopt,
    consent,
    stats,
    attribution: memory.attribution_,
    addToCart: (l) => line('add_to_cart', l),
    removeFromCart: (l) => line('remove_from_cart', { ...l, quantity: undefined }),
    updateQuantity: (l) => line('update_quantity', l),
    purchase({ order, lines }) {
      const decisions = memory.order_(order);
      const bought = new Map<string, [decision: string, fields: Fields]>();
      for (const l of lines) {
        const fields: Fields = { ...fieldsOf(l), order_external_id: order };
        const key = fields.item_id + ' ' + (fields.variant_id ?? '');
        const decision = l.decision ?? decisions[key] ?? memory.decision_(fields.item_id!);
        if (!decision) continue;
        decisions[key] = decision;
        const id = derive('sig', connection, 'purchase', order, decision, fields.item_id!, fields.variant_id ?? '');
        const same = bought.get(id)?.[1];
        if (same) same.quantity = (same.quantity ?? 1) + (l.quantity ?? 1);
        else bought.set(id, [decision, fields]);
      }
      if (mode !== 'off' && bought.size) memory.rememberOrder_(order, decisions);
      return [...bought].map(([id, [decision, fields]]) => mint('purchase', decision, fields, id));
    },
    async recommend(placement, r = {}) {
      const asked = clock.page_();
      const [, text] = await call('connections/' + connection + '/recommendations', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({
          placement, item_id: itemOf(r), limit: r.limit, expand: r.expand && [r.expand], visitor: visitor(), client: client(),
          cart: r.cart?.map((l) => ({ quantity: 1, ...fieldsOf(l) })),
        }),
      }, r.timeoutMs, r.signal);
      const json = JSON.parse(text) as DecisionJSON;
      clock.correct_(asked, json.served_at);
      return adopt(json);
    },
    async item(of) {
      const id = itemOf(of)!;
      const held = items.get(id);
      const [answer, text] = await call('catalog/items/' + id, { headers: held ? { 'If-None-Match': held[0] } : {} });
      if (answer.status === 404) {
        items.delete(id);
        return null;
      }
      const read = answer.status === 304 ? held![1] : (JSON.parse(text) as CatalogAggregate);
      const newest = items.get(id)?.[1] ?? read;
      if (newest.refresh_revision > read.refresh_revision) return newest;
      items.set(id, [answer.headers.get('ETag') ?? '', read]);
      return read;
    },
    async flush() {
      queue.tick_();
      await sender.flush_();
      return stats();
    },
    on(event, f) {
      heard[event]!.add(f as never);
      return () => void heard[event]!.delete(f as never);
    },
    close() {
      life.abort();
      timers.forEach((t) => clearTimeout(t as number));
      sender.stop_();
      queue.leave_();
    },
  };
}
