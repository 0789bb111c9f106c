import { random } from './ident';
import type { Store } from './store';
import type { Result, SignalType } from './types';

// The queue keeps a signal until an answer names its id. Whatever is in doubt is sent again, with the same bytes:
// the service counts an id once, so tabs need no lock and no leader. Each signal is one key of storage, so there is
// no list that two tabs could overwrite:
//
//   sf1.<connection>.<tab>.<signal_id>   when it was minted, a space, the signal's JSON
//   sf1.<connection>.<tab>.alive         the last sign of life of a tab that has signals
export interface Entry {
  id_: string;
  type_: SignalType;
  json_: string;
  minted_: number;
  attempts_: number;
  /** Under which it is stored; '' when it is in memory alone. */
  key_: string;
  /** The request that carries it now. */
  request_?: object | null;
}

export interface Queue {
  entries_: Map<string, Entry>;
  add_(id: string, json: string): void;
  /** What no request carries, dearest first. */
  waiting_(): Entry[];
  finish_(e: Entry, status: Result['status'], reason?: string): void;
  /** Says that this tab lives, takes over what silent tabs (or all) left, and drops what is too old. */
  tick_(all?: boolean): void;
  /** Forgets what another tab delivered while this page was frozen. */
  resume_(): void;
  /** Lets other tabs take over at once. */
  leave_(): void;
}

const MAX_ENTRIES = 500;
const MAX_BYTES = 256 << 10;
const SILENT = 45e3;
const DAY = 864e5;

// The order of worth, in which the service sheds load too.
const worths: Partial<Record<SignalType, number>> = { impression: 0, click: 1, dismiss: 2, purchase: 4 };
const worth = (e: Entry) => worths[e.type_] ?? 3;

export function openQueue(prefix: string, store: Store, told: (r: Result) => void): Queue {
  const entries = new Map<string, Entry>();
  const tab = prefix + random('t') + '.';
  const alive = 'alive';
  let beaten = 0;
  let elsewhere = 0; // signals of other tabs that live

  const leave_ = () => {
    beaten = 0;
    store.remove_(tab + alive);
  };
  const waiting_ = () => [...entries.values()].filter((e) => !e.request_).sort((a, b) => worth(b) - worth(a));

  // beat gives a sign of life, at most every 15 seconds.
  const beat = () => {
    if (Date.now() - beaten > 14e3) store.set_(tab + alive, '' + (beaten = Date.now()));
  };

  const put = (id: string, json: string, minted: number) => {
    beat();
    const key_ = store.set_(tab + id, minted + ' ' + json) ? tab + id : '';
    const type_ = JSON.parse(json).type;
    entries.set(id, { id_: id, type_, json_: json, minted_: minted, attempts_: 0, key_ });
  };

  const finish_: Queue['finish_'] = (e, status, reason) => {
    entries.delete(e.id_);
    store.remove_(e.key_);
    if (!entries.size) leave_();
    told({ signalId: e.id_, type: e.type_, status, reason, attempts: e.attempts_, ms: Date.now() - e.minted_ });
  };

  const evict = () => {
    let bytes = 0;
    entries.forEach((e) => (bytes += e.json_.length));
    for (let cheap; entries.size + elsewhere > MAX_ENTRIES || bytes > MAX_BYTES; ) {
      cheap = waiting_().reverse();
      const least = cheap.filter((e) => worth(e) === worth(cheap[0]!)).pop();
      if (!least) return;
      bytes -= least.json_.length;
      finish_(least, 'evicted');
    }
  };

  // takeOver puts a signal of a silent tab under this one's name.
  const takeOver = (key: string, id: string) => {
    const [minted, json] = (store.get_(key) ?? '').split(/ (.*)/s);
    try {
      if (!entries.has(id)) put(id, json!, +minted!);
    } catch {} // it cannot be read
    store.remove_(key);
  };

  return {
    entries_: entries,
    waiting_,
    finish_,
    leave_,
    add_(id, json) {
      if (entries.has(id)) return;
      put(id, json, Date.now());
      evict();
    },
    tick_(all) {
      const now = Date.now();
      if (entries.size) beat();
      elsewhere = 0;
      for (const key of store.keys_()) {
        const [, owner, id] = (key.startsWith(prefix + 't') && /(.*\.t[^.]*\.)(.*)/.exec(key)) || [];
        if (!owner || owner === tab) continue;
        if (!all && Math.abs(now - +store.get_(owner + alive)!) <= SILENT) elsewhere += +(id !== alive);
        else if (id === alive) store.remove_(key);
        else takeOver(key, id!);
      }
      entries.forEach((e) => {
        if (now - e.minted_ > (e.type_ === 'purchase' ? 30 : 7) * DAY) finish_(e, 'expired');
      });
      evict();
    },
    resume_() {
      entries.forEach((e) => {
        e.request_ = null;
        if (e.key_ && store.get_(e.key_) === null) entries.delete(e.id_);
      });
    },
  };
}
