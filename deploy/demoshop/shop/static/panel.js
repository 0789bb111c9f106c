// The panel "What happened" and its buttons. It is no part of the integration: it watches the SDK's storage from
// outside and tells the demo shop's server, which knows the rest from its proxy and from the engine.
'use strict';

(() => {
  // look compares the storage with what it held before. A signal that was answered between two looks is known to the
  // server from its proxy.
  const tell = (report) => navigator.sendBeacon('/panel/minted', JSON.stringify(report));
  const held = new Set();
  const look = () => {
    const now = new Map();
    for (const key of Object.keys(localStorage)) {
      const [, id] = /^sf1\..*\.(sig_[\w-]+)$/.exec(key) || [];
      if (id) now.set(id, localStorage.getItem(key));
    }
    const fresh = [...now].filter(([id]) => !held.has(id));
    const removed = [...held].filter((id) => !now.has(id));
    fresh.forEach(([id]) => held.add(id));
    removed.forEach((id) => held.delete(id));
    if (fresh.length) tell({ signals: fresh.map(([, text]) => JSON.parse(text.slice(text.indexOf('{')))), stored: true });
    if (removed.length) tell({ removed });
  };
  setInterval(look, 50);
  addEventListener('pagehide', look);
  addEventListener('click', () => setTimeout(look)); // after the shop's own listeners

  // A clock that is three hours off, before the SDK reads it.
  const off = sessionStorage.getItem('clock-off') ? 3 * 3600e3 : 0;
  if (off) {
    const { now } = Date, origin = performance.timeOrigin;
    Date.now = () => now() + off;
    Object.defineProperty(performance, 'timeOrigin', { value: origin + off });
  }

  const rows = new Map();
  const element = (name, text, kind) => {
    const e = document.createElement(name);
    e.textContent = text;
    if (kind) e.className = kind;
    return e;
  };
  const clock = (time) => new Date(time).toISOString().slice(11, 23);

  // steps are the way of a signal, in order.
  const steps = (row) => {
    const all = [['minted', 'minted ' + clock(row.minted_at)]];
    if (row.stored) all.push(['stored', row.removed ? 'was stored in the browser' : 'stored in the browser']);
    for (const a of row.attempts) {
      all.push([a.outcome === 'accepted' || a.outcome === 'duplicate' ? 'good' : 'bad',
        'sent (' + a.form + ', ' + a.ms + ' ms): ' + a.outcome + (a.reason ? ' ' + a.reason : '')]);
    }
    if (row.line) all.push(['good', 'cart line ' + row.line.quantity + ', revision ' + row.line.revision]);
    if (row.created) {
      all.push(['good', 'engine: created ' + clock(row.created_at) + (row.exists ? ', exists × ' + row.exists : '')]);
    }
    return all;
  };

  const show = (row) => {
    const item = element('li', '');
    item.dataset.signal = row.signal_id;
    item.dataset.type = row.type;
    item.dataset.created = row.created;
    const title = element('p', '', 'title');
    title.append(element('strong', row.type.replaceAll('_', ' ')), ' ', element('code', row.signal_id.slice(0, 14) + '…'));
    const list = element('ul', '');
    for (const [kind, text] of steps(row)) list.append(element('li', text, kind));
    item.append(title, list);
    const old = rows.get(row.signal_id);
    if (old) old.replaceWith(item);
    else document.getElementById('rows').prepend(item);
    rows.set(row.signal_id, item);
  };

  const say = ({ count, faults, queue }) => {
    const text = 'Minted ' + count.minted + (count.minted === count.counted ? ' = ' : ' ≠ ') + 'counted ' + count.counted +
      (count.doubled ? ', DOUBLED ' + count.doubled : '') + (count.refused ? ', rejected ' + count.refused : '');
    const line = document.getElementById('count');
    if (line.textContent !== text) line.textContent = text; // so that a reader does not say it again
    line.classList.toggle('even', count.minted === count.counted);
    document.getElementById('queue').textContent = queue
      ? 'Delivery: ' + queue.state + ', pending ' + queue.pending + ', unconfirmed ' + queue.unconfirmed
      : 'Delivery: unknown';
    for (const button of document.querySelectorAll('[data-fault]')) {
      const left = faults[button.dataset.fault];
      if (button.dataset.fault !== 'send-twice') button.setAttribute('aria-pressed', String(left !== undefined));
    }
    document.getElementById('no-rows').hidden = rows.size > 0;
  };

  const acts = {
    clock() {
      if (off) sessionStorage.removeItem('clock-off');
      else sessionStorage.setItem('clock-off', '1');
      location.reload();
    },
    // Mints a signal and is gone in the same moment.
    leave() {
      const link = document.querySelector('.shelf a[href*="decision="]');
      if (link) link.dispatchEvent(new MouseEvent('click', { cancelable: true }));
      location.href = '/away?from=' + encodeURIComponent(location.pathname + location.search);
    },
    'two-tabs'() { open(location.href, '_blank'); },
  };

  const listen = () => {
    const events = new EventSource('/panel/events');
    events.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      (event.rows || []).forEach(show);
      say(event);
    };
    addEventListener('pagehide', () => events.close(), { once: true });
  };

  addEventListener('pageshow', (e) => { if (e.persisted) listen(); });
  addEventListener('DOMContentLoaded', () => {
    listen();
    document.querySelector('[data-act=clock]').setAttribute('aria-pressed', String(off > 0));
    document.querySelector('.panel').addEventListener('click', async ({ target }) => {
      if (target.dataset.act) acts[target.dataset.act]();
      if (!target.dataset.fault) return;
      const answer = await fetch('/panel/faults/' + target.dataset.fault, { method: 'POST' });
      document.getElementById('said').textContent = answer.ok ? '' : await answer.text();
    });
  });
})();
