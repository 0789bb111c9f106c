import type { Entry, Queue } from './queue';
import type { Store } from './store';
import type { Result, Stats } from './types';

// The sender decides when a request leaves, which signals it carries, and what its answer means. There is at most
// one request at a time, and one more when the page is hidden.
export interface Sender {
  /** Sends within `ms`. */
  soon_(ms: number): void;
  /** Sends what waits, because the page may end. */
  leave_(): void;
  /** Starts anew: the page was frozen, or the browser is online again. */
  resume_(frozen: boolean): void;
  flush_(): Promise<void>;
  /** Sends no more. */
  stop_(): void;
  /** Milliseconds until any tab may send again. */
  pause_(): number;
}

export interface Target {
  url_: string;
  key_: string;
  auto_: boolean;
}

const BATCH_BYTES = 32 << 10;
const KEEPALIVE_BYTES = 48 << 10;
const HOUR = 36e5;

export function openSender(
  target: Target, prefix: string, queue: Queue, local: Store, session: Store, stats: Stats, changed: () => void,
): Sender {
  let header = !target.auto_ || !!session.get_(prefix + 'form'); // JSON with Authorization
  let switched = header;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let due = 0;
  let busy: object | null = null;
  let carried = 0; // bytes of requests that may outlive the page
  let ceiling = 50;
  let most = ceiling; // signals of a batch
  let failures = 0;
  let notBefore = 0; // of performance.now()
  let offlineSince = 0;
  const flushed: (() => void)[] = [];

  const pause_ = () => {
    const left = +local.get_(prefix + 'pause')! - Date.now();
    return left > 0 && left < 2 * HOUR ? left : 0; // a clock that was set back does not pause for long
  };

  // The browser is believed to be offline for 30 seconds at most.
  const offline = () => {
    if (globalThis.navigator?.onLine !== false) return (offlineSince = 0);
    offlineSince ||= performance.now();
    return offlineSince + 30e3 - performance.now();
  };

  const soon_ = (ms: number) => {
    const at = performance.now() + ms;
    if (timer && due <= at) return;
    clearTimeout(timer);
    due = at;
    timer = setTimeout(run, ms);
  };

  const run = () => {
    timer = undefined;
    if (busy) return; // its end goes on
    const wait = Math.max(pause_(), notBefore - performance.now(), offline());
    const batch = wait > 0 || stats.stopped ? [] : pick();
    if (batch.length) return send(batch);
    if (wait > 0 && queue.entries_.size) soon_(wait);
    flushed.splice(0).forEach((f) => f());
  };

  const pick = () => {
    let bytes = 0;
    return queue.waiting_().slice(0, most).filter((e, i) => (bytes += e.json_.length + 1) < BATCH_BYTES || !i);
  };

  const send = (batch: Entry[], leaving?: boolean) => {
    const request = {};
    const body = '{"signals":[' + batch.map((e) => e.json_) + ']}';
    const url = header ? target.url_ : target.url_ + '?key=' + target.key_;
    const keepalive = carried + body.length <= KEEPALIVE_BYTES;
    const stop = new AbortController();
    const limit = setTimeout(() => stop.abort(), 10e3);
    stats.requests++;
    if (!leaving) busy = request;
    if (keepalive) carried += body.length;
    for (const e of batch) {
      e.request_ = request;
      if (e.attempts_++) stats.resent++;
    }
    const post = async () => {
      if (leaving && !(keepalive && 'keepalive' in Request.prototype)) throw 0;
      const answer = await fetch(url, {
        method: 'POST', body, keepalive, credentials: 'omit', signal: stop.signal,
        priority: leaving ? 'auto' : 'low',
        headers: header ? { 'Content-Type': 'application/json', Authorization: 'Bearer ' + target.key_ } : {},
      });
      // A body that is not read holds the bytes that the browser allows to outlive the page.
      const text = await answer.text();
      if (answer.status === 202) accept(batch, text);
      else refuse(batch, answer, text);
    };
    post()
      .catch(() => {
        // A beacon has no answer, so the signals stay.
        const sent = leaving && !header && !stop.signal.aborted && navigator.sendBeacon?.(url, body);
        return sent ? new Promise((f) => setTimeout(f, 10e3)) : backOff();
      })
      .then(() => {
        clearTimeout(limit);
        if (keepalive) carried -= body.length;
        for (const e of batch) if (e.request_ === request) e.request_ = null;
        if (busy === request) busy = null;
        if (!timer && (flushed.length || queue.waiting_().length)) soon_(0);
      });
  };

  // accept believes only an answer that names every signal in its place.
  const accept = (batch: Entry[], text: string) => {
    const { results } = JSON.parse(text) as { results: { signal_id: string; status: Result['status']; reason?: string }[] };
    const named = batch.every(
      (e, i) => results[i]!.signal_id === e.id_ && /^(accepted|duplicate|rejected)$/.test(results[i]!.status),
    );
    if (!named || results.length !== batch.length) return backOff();
    failures = 0;
    most = Math.min(ceiling, most * 2);
    if (header && target.auto_) session.set_(prefix + 'form', 'header');
    batch.forEach((e, i) => {
      if (queue.entries_.has(e.id_)) queue.finish_(e, results[i]!.status, results[i]!.reason);
    });
  };

  const refuse = (batch: Entry[], { status, headers }: Response, text: string) => {
    const after = headers.get('Retry-After');
    const ms = +after! * 1000 || Date.parse(after!) - Date.now();
    if (status === 401 && !switched) {
      header = switched = true;
    } else if ([401, 403, 404, 405, 410].includes(status)) {
      stats.stopped = status;
      console.warn(`storefront: ${status}, signals are kept and not sent: ${text.slice(0, 300)}`);
      changed();
    } else if ([400, 413, 422].includes(status)) {
      if (batch.length > 1) halve(batch.length, text);
      else {
        console.error(`storefront: ${status}, a signal is dropped: ${text.slice(0, 300)}`);
        queue.finish_(batch[0]!, 'malformed', '' + status);
      }
    } else if ([429, 503].includes(status) && ms > 0) {
      local.set_(prefix + 'pause', '' + (Date.now() + Math.min(ms, HOUR) * (1 + Math.random() / 4)));
      changed();
    } else backOff();
  };

  const halve = (n: number, text: string) => {
    const allowed = +(/"max_signals_per_batch":\s*(\d+)/.exec(text) ?? [])[1]!;
    if (allowed < n) ceiling = allowed || 1;
    most = allowed < n ? ceiling : n >> 1;
  };

  // Full jitter, so that pages do not come back together.
  const backOff = () => {
    notBefore = performance.now() + Math.random() * Math.min(3e5, 1000 * 2 ** failures++);
  };

  return {
    soon_,
    pause_,
    stop_() {
      stats.stopped ||= 1;
      clearTimeout(timer);
    },
    leave_() {
      const batch = pause_() || stats.stopped ? [] : pick();
      if (batch.length) send(batch, true);
    },
    resume_(frozen) {
      if (frozen) busy = null;
      offlineSince = notBefore = 0;
      soon_(0);
    },
    flush_: () =>
      new Promise((f) => {
        flushed.push(f);
        notBefore = 0;
        soon_(0);
      }),
  };
}
