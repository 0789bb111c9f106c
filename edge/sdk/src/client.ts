import { derive, random } from './ident.js';
import { observe } from './observe.js';
import { openStore } from './store.js';
import type {
  CatalogAggregate, Consent, DecisionItem, DecisionJSON, Line, Options, RecommendOptions, Result, SignalType, Stats, Storefront,
} from './types.js';

// A signal is kept in storage until an answer names its id. Whatever is in doubt is sent again, with the same bytes:
// the service counts an id once, so tabs need no lock and no leader. In storage, under sf1.<connection>:
//
//   <tab>.<signal_id>   when it was minted, a space, the signal's JSON. There is no list that tabs could overwrite
//   <tab>.alive         the last sign of life of a tab that has signals
//   pause               no tab sends before
//   clock               the time of the last signal
//   led                 which Decision led to an item, or to a line of an order
//   visitor             the random visitor id
//
// and in sessionStorage session (its random id), skew (of the page's clock), and swap (the header form serves).
//
// It is one function over one set of variables, since every object between its parts would cost bytes in every
// shop's pages; the build fails above 4,608.

/** The fields of a signal that its type decides. */
interface Fields {
  item_id?: string;
  variant_id?: string;
  position?: number;
  quantity?: number;
  order_external_id?: string;
}

/** A signal in storage. */
interface Entry {
  name_: string;
  id_: string;
  type_: SignalType;
  json_: string;
  minted_: number;
}

type Answer = [answer: Response, text: string];

// The order of worth, in which the service sheds load too: impression, click, dismiss, add_to_cart,
// remove_from_cart, update_quantity, purchase.
const worth = (type: SignalType) => 'icdarup'.search(type[0]!);

/** Connects a page with the service. Nothing is sent before something is asked, told or left over. */
export function storefront(o: Options): Storefront {
  const { connectionId, key } = o;
  const base = o.baseUrl.replace(/\/*$/, '/v1/');
  const path = base + 'connections/' + connectionId + '/';
  const page = globalThis.document as (Document & { prerendering?: boolean }) | undefined;
  const counts = { requests: 0, resent: 0, accepted: 0, duplicate: 0, rejected: 0, dropped: 0, stopped: 0 };
  const read: { [id: string]: CatalogAggregate | null } = {};
  let mode: Consent = 'full';

  // --- What the page hears ---

  const heard = new Set<[event: string, f: Function]>(o.onResult && [['result', o.onResult]]);
  const tell = (event: string, x: Result | Stats) =>
    heard.forEach(([e, f]) => e === event && setTimeout(f, 0, x));
  const changed = () => tell('state', stats());

  const stats = (): Stats => ({
    ...counts, waiting: entries().length - flying.size, inFlight: flying.size, pausedMs: pause(), consent: mode,
    storage: store.off_ || store.broken_ ? 'memory' : 'local',
  });

  // --- What the page remembers ---

  const [get, set, remove, keys, store] = openStore('sf1.' + connectionId + '.', changed);

  // What led to the items and to the lines of orders: [what, Decision, when], the newest first.
  const list = (): [string, string, number][] =>
    JSON.parse(get('led') ?? '[]').filter((x: [string, string, number]) => Date.now() - x[2] < 2592e6);
  const recall = (what: string) => list().find((x) => x[0] === what)?.[1];
  const remember = (what: string, decision: string) =>
    mode !== 'off' && set('led', JSON.stringify([[what, decision, Date.now()], ...list().filter((x) => x[0] !== what)].slice(0, 99)));

  const named = (name: string) => {
    const id = get(name) ?? random(name.slice(0, 3) + '_');
    set(name, id);
    return id;
  };
  const own = () => {
    const id = (o.visitorId as { call?: () => string })?.call?.() ?? (o.visitorId as string);
    if (id && !/^vis_(?![\d_-]{7,}$)[\w-]{1,64}$/.test(id)) throw TypeError('visitorId');
    return id;
  };
  const visitor = () => {
    if (mode !== 'full') return;
    return { visitor_id: own() || named('visitor'), session_id: named('session') };
  };

  // The page's clock only goes forward, over pages too, so that carts are folded in the order in which the shopper
  // acted. A served Decision corrects it when it is wrong by more than two seconds.
  let origin = performance.timeOrigin;
  const clock = () => {
    const behind = +get('clock')! - origin - performance.now();
    if (behind > 0 && behind < 864e5) origin += behind;
    return origin + performance.now();
  };

  // --- What waits, and how it is sent ---

  const tab = random('t');
  const attempts: { [name: string]: number } = {};
  const flying = new Set<string>(); // names of entries that a request carries
  let busy: Promise<void> | undefined;
  let carried = 0; // bytes of requests that may outlive the page
  let header = o.auth === 'header' || !!get('swap'); // JSON with Authorization
  let most = 50; // signals of a batch
  let load = 0; // bytes that were minted since the last request
  let failures = 0;
  let planned = 0; // the timer of the next look
  let notBefore = 0; // of performance.now()
  let left = false; // the page has ended, or waits in the back-forward cache

  // live gives the tab's sign of life while it has signals to send, and takes it away for others to take over.
  const live = (some: unknown) =>
    some && !left && !counts.stopped ? set(tab + '.alive', Date.now()) : remove(tab + '.alive');

  const ask = async (
    url: string, body: string | undefined, form: unknown, ms: number, more: RequestInit,
  ): Promise<Answer> => {
    const stop = new AbortController();
    const abort = () => stop.abort();
    setTimeout(abort, ms); // of no effect after the answer
    more.signal?.addEventListener('abort', abort);
    const answer = await fetch(url, {
      ...more, method: body && 'POST', body, credentials: 'omit', signal: stop.signal,
      headers: form ? { 'Content-Type': 'application/json', Authorization: 'Bearer ' + key } : {},
    });
    // A body that is not read holds the bytes that the browser allows to outlive the page.
    return [answer, await answer.text()];
  };

  const finish = (e: Entry, status: Result['status'], reason?: string) => {
    remove(e.name_);
    const r: Result = {
      signalId: e.id_, type: e.type_, status, reason, attempts: attempts[e.name_]! | 0, ms: Date.now() - e.minted_,
    };
    if (status in counts) counts[status as 'accepted']++;
    else {
      counts.dropped++;
      tell('drop', r);
    }
    if (o.debug) console.debug(r);
    tell('result', r);
  };

  // entries returns this tab's signals and those of silent tabs, dearest first. What is too old or too much ends.
  const entries = () => {
    const now = Date.now();
    let room = 500;
    let bytes = 256 << 10;
    return keys().flatMap((name): Entry[] => {
      const [, owner, id, minted, json, type] =
        /(.+)\.(\w+) (\d+) ?(.*"type":"(\w+).*)?/.exec(name + ' ' + get(name)) ?? [];
      if (!id) return [];
      if (owner !== tab && Math.abs(now - +get(owner + '.alive')!) < 45e3) room--;
      else if (type) return [{ name_: name, id_: id!, type_: type as SignalType, json_: json!, minted_: +minted! }];
      else if (owner !== tab) remove(name); // the last sign of life
      return [];
    }).sort((a, b) => worth(b.type_) - worth(a.type_)).filter((e) => {
      const old = now - e.minted_ > (e.type_ === 'purchase' ? 30 : 7) * 864e5;
      if (!old && room-- > 0 && (bytes -= e.json_.length) > 0 || flying.has(e.name_)) return true;
      finish(e, old ? 'expired' : 'evicted');
      return false;
    });
  };

  const pause = () => {
    const left = +get('pause')! - Date.now();
    return left > 0 && left < 72e5 ? left : 0; // a clock that was set back pauses nobody for long
  };

  // run sends what waits, as far as it may; the promise ends when no more can be sent now.
  const run = (): Promise<void> | undefined => {
    if (busy || left || page?.prerendering) return busy;
    const all = entries();
    live(all[0]);
    const wait = Math.max(pause(), notBefore - performance.now());
    if (wait <= 0) return send(all);
    // One timer, however many signals wait: each look reads all of them.
    if (all[0]) planned ||= setTimeout(() => (planned = 0, run()), wait) as never;
    return;
  };

  const send = (all: Entry[], leaving?: boolean): Promise<void> | undefined => {
    let bytes = 0;
    const batch = counts.stopped ? [] : all.filter((e) => !flying.has(e.name_)).slice(0, most)
      .filter((e, i) => (bytes += e.json_.length + 1) < 32 << 10 || !i);
    if (!batch[0]) return;
    load = 0;
    const body = '{"signals":[' + batch.map((e) => e.json_) + ']}';
    const url = path + 'storefront-signals' + (header ? '' : '?key=' + key);
    const keepalive = leaving || carried + bytes < 48 << 10; // a refused one becomes a beacon
    if (keepalive) carried += bytes;
    counts.requests++;
    for (const { name_ } of batch) {
      flying.add(name_);
      if (attempts[name_]!++) counts.resent++;
      else attempts[name_] = 1;
    }
    const sent = ask(url, body, header, 1e4, { keepalive, priority: leaving ? 'auto' : 'low' })
      .then(([answer, text]) => hear(batch, text, answer))
      // A beacon has no answer, so its signals stay.
      .catch(() => leaving && !header && navigator.sendBeacon(url, body) ? new Promise((f) => setTimeout(f, 10e3)) : backOff())
      .then(() => {
        if (keepalive) carried -= bytes;
        for (const e of batch) flying.delete(e.name_);
        if (!leaving) busy = undefined;
        return run();
      });
    if (!leaving) busy = sent;
    return sent;
  };

  // hear believes only a 202 that names every signal in its place.
  const hear = (batch: Entry[], text: string, { status, headers }: Response) => {
    const after = headers.get('Retry-After')!; // seconds or a date
    const ms = +after * 1e3 || Date.parse(after) - Date.now();
    if (status === 202) {
      const results = JSON.parse(text).results as { signal_id: string; status: Result['status']; reason?: string }[];
      if (results[batch.length] ||
        batch.some((e, i) => results[i]!.signal_id !== e.id_ || !(results[i]!.status in counts))) return backOff();
      failures = 0;
      most = Math.min(50, most * 2);
      if (header) set('swap', 1);
      batch.forEach((e, i) => finish(e, results[i]!.status, results[i]!.reason));
    } else if (status === 401 && !header) header = true;
    else if (/40[1345]|410/.test(status as never)) {
      counts.stopped = status;
      console.warn('storefront', status, text);
      changed();
    } else if (/400|413|422/.test(status as never)) {
      most = +/batch":(\d+)/.exec(text)?.[1]! || batch.length + 1 >> 1;
      if (batch[1]) return;
      console.error('storefront', status, text);
      finish(batch[0]!, 'malformed');
    } else if (/429|503/.test(status as never) && ms > 0) {
      set('pause', Date.now() + Math.min(ms, 36e5) * (1 + Math.random() / 4));
      changed();
    } else backOff();
  };

  // Full jitter, so that pages do not come back together.
  const backOff = () => {
    notBefore = performance.now() + Math.random() * Math.min(3e5, 1e3 * 2 ** failures++);
  };

  // --- What the shopper does ---

  // The query of the page may hold what is nobody's business, so it stays here.
  let described = !page; // a signal of this page view has `client`
  const client = () => {
    described = true;
    return page && {
      page_url: location.href.split(/[?#]/)[0],
      languages: navigator.languages,
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    };
  };

  const mint = (type: SignalType, decision_id: string, fields?: Fields, signal_id = random('sig_')): string => {
    if (mode === 'off') return '';
    const name = tab + '.' + signal_id;
    if (get(name)) return signal_id;
    const now = clock();
    set('clock', now + 1); // no two signals have the same time
    live(1);
    const json = JSON.stringify({
      signal_id, type, occurred_at: new Date(now + (+get('skew')! || 0)), decision_id, ...fields,
      visitor: visitor(), client: !described || type === 'impression' ? client() : undefined,
    });
    set(name, Date.now() + ' ' + json);
    // A full batch, of 50 signals or 32 KiB, waits no longer.
    load += Math.max(json.length, 656);
    setTimeout(run, load < 32 << 10 && /^[di]/.test(type) ? 1e3 : 0);
    return signal_id;
  };

  const itemOf = ({ itemId, product }: { itemId?: string; product?: string }) =>
    itemId ?? (product && derive('itm', connectionId, 'product', product));
  const fieldsOf = (l: Line) => ({
    item_id: itemOf(l),
    variant_id: l.variantId ?? (l.variant && derive('var', connectionId, 'variant', l.product!, l.variant)),
    quantity: l.quantity ?? 1,
  });
  const line = (type: SignalType, l: Line, position?: number): string => {
    const fields: Fields = { ...fieldsOf(l), position };
    if (!/^[au]/.test(type)) delete fields.quantity;
    const decision = l.decision ?? recall(fields.item_id!);
    if (!decision) return '';
    if (/add|click/.test(type)) remember(fields.item_id!, decision);
    return mint(type, decision, fields);
  };

  const adopt = (json: DecisionJSON) => {
    const { decision_id: id } = json;
    let told = '';
    const impression = () => (told ||= page?.prerendering ? ''
      : mint('impression', id, {}, derive('sig', connectionId, 'impression', id))) || null;
    return {
      id, placement: json.placement, servedAt: json.served_at, source: json.source, impression,
      observe: (el: Element) => observe(el, impression),
      items: json.items.map(({ position, item_id: itemId, variant_id: variantId, item }): DecisionItem => {
        const act = (type: SignalType, l?: Line) =>
          line(type, { variantId, product: item?.external_id, ...l, itemId, decision: id }, position);
        return {
          position, itemId, variantId, item,
          click: () => act('click'), dismiss: () => act('dismiss'), addToCart: (l) => act('add_to_cart', l),
        };
      }),
    };
  };

  // call returns null for a 404 of a read.
  const call = async (url: string, body?: object, { timeoutMs, signal }: RecommendOptions = {}) => {
    if (mode === 'off') throw Error('off');
    const [{ status }, text] = await ask(url, body && JSON.stringify(body), 1, timeoutMs ?? 5e3, { signal });
    if (status === 200) return JSON.parse(text);
    if (body || status !== 404) throw Object.assign(Error(text), { status });
    return null;
  };

  const consent = (c: Consent) => {
    mode = c === 'full' && o.respectGPC !== false &&
      page && (navigator as { globalPrivacyControl?: boolean }).globalPrivacyControl ? 'anonymous' : c;
    const names = mode === 'full' ? [] : keys();
    const kept = names.map((name) => [name, get(name)!] as const);
    names.map(remove);
    store.off_ = mode !== 'full' || o.storage === 'memory';
    if (mode !== 'off') kept.map(([name, value]) => /sig_/.test(name) && set(name, value));
    changed();
  };

  own();
  consent(o.consent ?? 'full');
  // A page that ends sends what it minted. What it found may just have been sent by the page that left it.
  const leave = () => pause() || send(entries().filter((e) => !e.name_.indexOf(tab)), true);
  const wait = (ms: number) => {
    notBefore = performance.now() + ms;
    return run();
  };
  const events: Record<string, (e: any) => unknown> = {
    visibilitychange: () => page!.hidden && leave(),
    pagehide() {
      leave();
      left = true;
      live(0);
    },
    pageshow: (e) => e.persisted && (left = false, run()),
    resume: run,
    // Another tab ended, perhaps after this one looked for what it left.
    storage: ({ key, newValue }) => newValue || /alive$/.test(key) && setTimeout(run, 1e3),
    online: () => wait(0),
    offline: () => wait(30e3), // browsers are wrong about it
  };
  let timer: unknown;
  if (page) {
    for (const type in events)
      addEventListener(type, events[type]!, true);
    setTimeout(run, 1e3);
    timer = setInterval(run, 15e3);
  }

  return {
    adopt, consent, stats,
    addToCart: (l) => line('add_to_cart', l),
    removeFromCart: (l) => line('remove_from_cart', l),
    updateQuantity: (l) => line('update_quantity', l),
    purchase({ order, lines }) {
      const bought: { [id: string]: [decision: string, fields: Fields] } = {};
      for (const l of lines) {
        const fields: Fields = { ...fieldsOf(l), order_external_id: order };
        const of = [order, fields.item_id!, fields.variant_id ?? ''] as const;
        const decision = l.decision ?? recall('' + of) ?? recall(of[1]);
        if (!decision) continue;
        remember('' + of, decision);
        const id = derive('sig', connectionId, 'purchase', order, decision, of[1], of[2]);
        fields.quantity! += bought[id]?.[1].quantity ?? 0;
        bought[id] = [decision, fields];
      }
      return Object.keys(bought).map((id) => mint('purchase', ...bought[id]!, id));
    },
    // 1;<decision>:<item>,<item>;<decision>:<item>: newest first, without prefixes, 8 characters of an item.
    attribution() {
      let text = '1', last;
      for (const [item, decision] of list()) {
        if (/,/.test(item)) continue;
        const next = text + (decision === last ? ',' : ';' + decision.slice(4) + ':') + item.slice(4, 12);
        if (next.length > 255) break;
        text = next, last = decision;
      }
      return text;
    },
    async recommend(placement, r = {}) {
      const asked = clock();
      const json: DecisionJSON = await call(path + 'recommendations', {
        placement, item_id: itemOf(r), limit: r.limit, expand: r.expand && [r.expand], visitor: visitor(),
        client: client(), cart: r.cart?.map(fieldsOf),
      }, r);
      const off = Date.parse(json.served_at) - (asked + clock()) / 2;
      set('skew', Math.abs(off) > 2e3 ? off : 0);
      return adopt(json);
    },
    // The browser's cache asks with the entity tag.
    async item(of) {
      const id = itemOf(of)!;
      const item: CatalogAggregate | null = await call(base + 'catalog/items/' + id);
      return read[id]?.refresh_revision! > item?.refresh_revision! ? read[id]! : read[id] = item;
    },
    async flush() {
      await wait(0);
      return stats();
    },
    on(event, f) {
      const one: [string, Function] = [event, f];
      heard.add(one);
      return () => heard.delete(one);
    },
    close() {
      counts.stopped = 1;
      clearInterval(timer as number);
      live(0);
    },
  };
}
