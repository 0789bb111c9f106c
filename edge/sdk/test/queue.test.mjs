// How signals wait: in storage, over tabs and page loads, and how much of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { World } from './world.mjs';

async function open(world, o = {}, page = world.page(o.page)) {
  const results = [];
  const sf = page.storefront({ onResult: (r) => results.push(r), ...o });
  const [decision] = await Promise.all([sf.recommend('home', { limit: 60 }), world.advance(10)]);
  return { page, sf, decision, results };
}
const stored = (world) => [...world.data.keys()].filter((k) => k.includes('.sig_'));
const alive = (world) => [...world.data.keys()].filter((k) => k.endsWith('.alive'));
const down = { status: 500, body: '' };

test('buying leaves at once, with what was told in the same turn; an impression after a second', async () => {
  const world = new World();
  const { decision } = await open(world);
  decision.impression();
  await world.advance(940);
  assert.equal(world.signalRequests().length, 0);
  await world.advance(60);
  assert.equal(world.signalRequests().length, 1);
  decision.items[0].addToCart();
  decision.items[1].dismiss();
  assert.equal(world.signalRequests().length, 1);
  await world.advance(0);
  assert.deepEqual(world.signalRequests()[1].signals.map((s) => s.type), ['add_to_cart', 'dismiss']);
});

test('50 signals do not wait', async () => {
  const world = new World();
  const { decision } = await open(world);
  for (let i = 0; i < 49; i++) decision.items[i].dismiss();
  await world.advance(100);
  assert.equal(world.signalRequests().length, 0);
  decision.items[49].dismiss();
  await world.advance(0);
  assert.equal(world.ids()[0].length, 50);
  decision.items[50].dismiss();
  await world.advance(800);
  assert.equal(world.signalRequests().length, 1, 'the next one waits again');
});

test('32 KiB do not wait', async () => {
  const world = new World();
  const { sf } = await open(world, { page: { url: 'https://shop.example/' + 'x'.repeat(1900) } });
  const see = (i) => sf.adopt({ decision_id: 'dec_' + i, placement: 'p', served_at: '', source: 'engine', items: [] }).impression();
  for (let i = 0; i < 10; i++) see(i);
  await world.advance(100);
  assert.equal(world.signalRequests().length, 0);
  for (let i = 10; i < 16; i++) see(i);
  await world.advance(0);
  assert.ok(world.ids()[0].length > 10);
});

test('a page that was frozen goes on when it is resumed', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push(down);
  const id = a.decision.items[0].addToCart();
  await world.advance(60);
  a.page.frozen = true;
  await world.advance(60_000);
  assert.equal(world.counted.get(id), undefined);
  a.page.frozen = false;
  world.timers = world.timers.filter((t) => t.page !== a.page); // which browsers may drop or delay
  a.page.fire('resume');
  await world.advance(0);
  assert.equal(world.counted.get(id), 1);
});

test('one request at a time, of at most 50 signals, the dearest first', async () => {
  const world = new World();
  const { decision, sf } = await open(world);
  world.script.push((r) => ({ ...world.answer(r), after: 3000 }));
  for (let i = 0; i < 58; i++) decision.items[i].dismiss();
  sf.purchase({ order: '1', lines: [{ itemId: 'itm_1', decision: 'dec_home' }] });
  await world.advance(2000);
  assert.equal(world.signalRequests().length, 1);
  assert.equal(world.ids()[0].length, 50);
  assert.equal(world.signalRequests()[0].signals[0].type, 'purchase');
  await world.advance(2000);
  assert.equal(world.ids()[1].length, 9);
});

test('a batch has at most 32 KiB', async () => {
  const world = new World();
  const { decision } = await open(world, { page: { url: 'https://shop.example/' + 'x'.repeat(1900) } });
  for (let i = 0; i < 30; i++) {
    const d = { decision_id: 'dec_' + i, placement: 'p', served_at: new Date().toISOString(), source: 'engine', items: [] };
    world.pages[0].global.last = d;
    decision.items[i].addToCart();
  }
  const sf = world.pages[0].storefront();
  for (let i = 0; i < 30; i++) sf.adopt({ decision_id: 'dec_i' + i, placement: 'p', served_at: '', source: 'engine', items: [] }).impression();
  await world.advance(5000);
  assert.ok(world.signalRequests().every((r) => r.body.length <= 32 << 10));
  assert.equal(world.counted.size, 60);
});

test('two tabs lose nothing of each other', async () => {
  const world = new World();
  world.script = Array(4).fill(down);
  const a = await open(world);
  const b = await open(world);
  const ids = [];
  for (let i = 0; i < 5; i++) ids.push(a.decision.items[i].addToCart(), b.decision.items[i].addToCart());
  assert.equal(stored(world).length, 10);
  a.page.kill();
  b.page.kill();
  const next = world.page();
  next.storefront();
  await world.advance(120_000);
  assert.deepEqual(ids.map((id) => world.counted.get(id)), ids.map(() => 1));
  assert.deepEqual(stored(world), []);
});

test('a signal of a killed tab is sent by the next page, once 45 seconds are over', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  const id = a.decision.items[0].addToCart();
  await world.advance(60);
  a.page.kill();
  const b = await open(world);
  await world.advance(40_000);
  assert.equal(world.signalRequests().length, 1);
  await world.advance(20_000);
  assert.equal(world.counted.get(id), 1);
  assert.equal(b.sf.stats().accepted, 1);
  assert.deepEqual(stored(world), []);
});

test('a tab that lives keeps its signals', async () => {
  const world = new World();
  const a = await open(world);
  world.script = Array(100).fill(down);
  a.decision.items[0].addToCart();
  const b = world.page();
  b.storefront();
  await world.advance(1_200_000);
  assert.ok(world.signalRequests().length > 3);
  assert.ok(world.signalRequests().every((r) => r.page === a.page));
});

test('a page that was left hands its signals over at once', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  const id = a.decision.items[0].click();
  a.page.close();
  assert.equal(world.signalRequests().length, 1, 'the unload request');
  assert.deepEqual(alive(world), []);
  const b = await open(world);
  await world.advance(1100);
  assert.equal(world.counted.get(id), 1);
  assert.deepEqual(stored(world), []);
  assert.equal(b.results[0].status, 'accepted');
});

for (const [what, answer] of Object.entries({
  'is cut': { status: 202, cut: true, after: 100 },
  'is a 500': { status: 500, after: 100 },
})) {
  test(`a page that was left gives no sign of life again when its last answer ${what}`, async () => {
    const world = new World();
    const a = await open(world);
    world.script.push(answer);
    const id = a.decision.items[0].addToCart();
    a.page.fire('pagehide', { persisted: false });
    a.page.hide(); // browsers hide a page after pagehide
    await world.advance(101); // the page is not torn down at once
    assert.deepEqual(alive(world), []);
    await world.advance(5000);
    const last = world.signalRequests().filter((r) => !r.beacon);
    assert.equal(last.length, 1, 'a page that was left asks no more');
    a.page.kill();
    await open(world);
    await world.advance(1000);
    assert.equal(world.counted.get(id), 1);
    assert.deepEqual(stored(world), []);
  });
}

test('a page that begins waits a second before it sends what another left', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  const id = a.decision.items[0].click();
  a.page.close();
  const b = world.page();
  b.storefront();
  b.fire('pageshow', { persisted: false });
  await world.advance(990);
  assert.equal(world.signalRequests().length, 1);
  await world.advance(10);
  assert.equal(world.counted.get(id), 1);
});

test('a page that ends sends what it minted, and not what another page may just have sent', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  const first = a.decision.items[0].click();
  a.page.close();
  const b = await open(world);
  world.script.push('hang');
  const second = b.decision.items[1].click();
  b.page.close(); // within a second
  assert.deepEqual(world.ids(), [[first], [second]]);
  await open(world);
  await world.advance(1000);
  assert.deepEqual([first, second].map((id) => world.counted.get(id)), [1, 1]);
  assert.deepEqual(stored(world), []);
});

test('a page that ends after the next one began is taken over without delay', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  const id = a.decision.items[0].addToCart();
  await world.advance(60);
  await open(world);
  await world.advance(1500);
  assert.equal(world.signalRequests().length, 1);
  a.page.close();
  await world.advance(1000);
  assert.equal(world.counted.get(id), 1);
  assert.equal(world.signalRequests().length, 2);
});

test('what is told while a page ends is handed over, too', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  a.page.window.addEventListener('pagehide', () => a.decision.items[0].addToCart());
  a.page.fire('pagehide', { persisted: false });
  assert.equal(stored(world).length, 1);
  assert.deepEqual(alive(world), []);
  a.page.hide();
  assert.equal(world.signalRequests().length, 1);
});

test('a page that comes back gives signs of life again', async () => {
  const world = new World();
  const a = await open(world);
  world.script = Array(100).fill(down);
  a.decision.items[0].addToCart();
  a.page.freeze();
  assert.deepEqual(alive(world), []);
  a.page.thaw();
  await world.advance(0);
  assert.equal(alive(world).length, 1);
});

test('the sign of life goes with the last signal', async () => {
  const world = new World();
  const a = await open(world);
  a.decision.items[0].addToCart();
  assert.equal(alive(world).length, 1);
  await world.advance(1000);
  assert.deepEqual(alive(world), []);
});

test('the unload request is the same simple form, and its signals stay until they are answered', async () => {
  const world = new World();
  const a = await open(world);
  a.decision.impression();
  a.decision.items[0].dismiss();
  world.script.push('hang');
  a.page.hide();
  const [request] = world.signalRequests();
  assert.equal(request.url, 'https://edge.example/v1/connections/con_a/storefront-signals?key=spk_k');
  assert.deepEqual(Object.keys(request.headers), []);
  assert.equal(request.keepalive, true);
  assert.equal(typeof request.body, 'string');
  a.page.fire('pagehide', { persisted: false });
  assert.equal(world.signalRequests().length, 1, 'what is on its way is not sent again');
  assert.equal(stored(world).length, 2);
  assert.equal(a.page.beacons.length, 0);
});

test('an unload request that the browser refuses becomes a beacon of the same form and bytes', async () => {
  const world = new World();
  const a = await open(world);
  a.page.keepalive = 64 << 10;
  const id = a.decision.items[0].dismiss();
  a.page.hide();
  await world.advance(0);
  const [refused, beacon] = world.signalRequests();
  assert.ok(refused.refused);
  assert.ok(beacon.beacon);
  assert.equal(beacon.url, refused.url);
  assert.equal(beacon.body, refused.body);
  assert.equal(typeof beacon.body, 'string');
  assert.equal(stored(world).length, 1, 'a beacon has no answer');
  a.page.keepalive = 0;
  await world.advance(20_000);
  assert.equal(world.counted.get(id), 1);
  assert.deepEqual(stored(world), []);
});

test('a hidden page may send one request beside the one that is on its way', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang', 'hang');
  a.decision.items[0].addToCart();
  await world.advance(60);
  a.decision.items[1].dismiss();
  a.page.hide();
  assert.equal(world.signalRequests().length, 2);
  assert.equal(world.signalRequests()[1].signals.length, 1);
});

test('a page that comes back from the back-forward cache goes on, without what another tab delivered', async () => {
  const world = new World();
  const a = await open(world);
  const session = new Map();
  world.script.push('hang');
  const id = a.decision.items[0].click();
  await world.advance(1);
  a.page.freeze();
  const b = await open(world, { page: { session } });
  await world.advance(2000);
  assert.equal(world.counted.get(id), 1);
  const before = world.signalRequests().length;
  a.page.thaw();
  await world.advance(30_000);
  assert.equal(world.signalRequests().length, before);
  const later = a.decision.items[1].click();
  await world.advance(2000);
  assert.equal(world.counted.get(later), 1);
  assert.ok(b.sf);
});

test('a page that comes back sends again what nobody delivered', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push('hang');
  const id = a.decision.items[0].click();
  await world.advance(1);
  a.page.freeze();
  await world.advance(60_000);
  a.page.thaw();
  await world.advance(15_000);
  assert.equal(world.counted.get(id), 1);
});

test('500 signals are kept, the cheapest go first and are told', async () => {
  const world = new World();
  const { decision, sf, results } = await open(world);
  const dropped = [];
  sf.on('drop', (r) => dropped.push(r));
  world.script = Array(1000).fill(down);
  const bought = sf.purchase({ order: '1', lines: [{ itemId: 'itm_1', decision: 'dec_home' }] });
  const impressions = Array.from({ length: 30 }, (_, i) =>
    sf.adopt({ decision_id: 'dec_' + i, placement: 'p', served_at: '', source: 'engine', items: [] }).impression());
  for (let i = 0; i < 300; i++) decision.items[i % 60].addToCart();
  for (let i = 0; i < 200; i++) decision.items[i % 60].click();
  await world.advance(5000);
  assert.equal(stored(world).length, 500);
  assert.equal(dropped.length, 31);
  assert.deepEqual(dropped.filter((r) => r.type === 'impression').map((r) => r.signalId).sort(), impressions.sort());
  assert.equal(dropped.filter((r) => r.type === 'click').length, 1);
  assert.ok(dropped.every((r) => r.status === 'evicted'));
  assert.equal(results.length, 31);
  assert.ok(stored(world).some((k) => k.endsWith(bought[0])));
});

test('256 KiB are kept', async () => {
  const world = new World();
  const { sf } = await open(world, { page: { url: 'https://shop.example/' + 'x'.repeat(1900) } });
  world.script = Array(1000).fill(down);
  for (let i = 0; i < 200; i++) sf.adopt({ decision_id: 'dec_' + i, placement: 'p', served_at: '', source: 'engine', items: [] }).impression();
  await world.advance(5000);
  const bytes = stored(world).reduce((n, k) => n + world.data.get(k).length, 0);
  assert.ok(bytes < 260 << 10 && bytes > 240 << 10, `${bytes}`);
});

test('a purchase lives 30 days, everything else 7, and the end is told', async () => {
  const world = new World();
  const a = await open(world);
  world.script = Array(20).fill('hang');
  const click = a.decision.items[0].click();
  const [purchase] = a.sf.purchase({ order: '1', lines: [{ itemId: 'itm_0' }] });
  a.page.close();
  world.now += 8 * 864e5;
  world.script = Array(1000).fill(down);
  const b = await open(world);
  await world.advance(3000);
  assert.deepEqual(b.results.map((r) => [r.signalId, r.status]), [[click, 'expired']]);
  assert.equal(stored(world).length, 1);
  assert.ok(stored(world)[0].endsWith(purchase));
  b.page.close();
  world.now += 23 * 864e5;
  const c = await open(world);
  await world.advance(3000);
  assert.deepEqual(c.results.map((r) => [r.signalId, r.status]), [[purchase, 'expired']]);
});

for (const fails of ['set', true]) {
  test(`storage that throws (${fails}) is replaced by memory, which is told once`, async () => {
    const world = new World();
    const page = world.page();
    page.storageFails = fails;
    const { sf, decision } = await open(world, {}, page);
    const states = [];
    sf.on('state', (s) => states.push(s));
    const id = decision.items[0].addToCart();
    decision.items[1].addToCart();
    assert.equal(sf.stats().storage, 'memory');
    await world.advance(100);
    assert.equal(world.counted.get(id), 1);
    assert.equal(world.counted.size, 2);
    assert.equal(sf.stats().waiting, 0);
    assert.ok(states.length <= 1);
  });
}

test('storage that is full keeps what it has, and memory the rest', async () => {
  const world = new World();
  const a = await open(world);
  world.script.push(down);
  a.decision.items[0].addToCart();
  a.page.storageFails = 'set';
  a.decision.items[1].addToCart();
  assert.equal(stored(world).length, 1);
  assert.equal(a.sf.stats().waiting, 2);
  await world.advance(5000);
  assert.equal(world.counted.size, 2);
});

test('offline waits for online, and is believed for 30 seconds', async () => {
  const world = new World();
  const { page, decision } = await open(world);
  page.navigator.onLine = false;
  page.fire('offline');
  decision.items[0].addToCart();
  await world.advance(29_000);
  assert.equal(world.signalRequests().length, 0);
  await world.advance(2000);
  assert.equal(world.signalRequests().length, 1);
  page.fire('offline');
  decision.items[1].addToCart();
  await world.advance(1000);
  assert.equal(world.signalRequests().length, 1);
  page.fire('online');
  await world.advance(0);
  assert.equal(world.signalRequests().length, 2);
});

test('flush sends at once and says what is left', async () => {
  const world = new World();
  const { sf, decision } = await open(world);
  for (let i = 0; i < 60; i++) decision.items[i].dismiss();
  const [stats] = await Promise.all([sf.flush(), world.advance(0)]);
  assert.equal(stats.waiting + stats.inFlight, 0);
  assert.equal(stats.accepted, 60);
  world.script = Array(10).fill(down);
  decision.items[0].dismiss();
  const [left] = await Promise.all([sf.flush(), world.advance(0)]);
  assert.equal(left.waiting, 1);
});

test('the pause of a clock that was set back ends', async () => {
  const world = new World();
  const { page, decision } = await open(world);
  world.script.push({ status: 503, headers: { 'Retry-After': '10' }, body: '' });
  decision.items[0].addToCart();
  await world.advance(60);
  page.skew = -3 * 36e5;
  decision.items[1].addToCart();
  await world.advance(30_000);
  assert.equal(world.counted.size, 2);
});

test('close ends timers, and the signals stay for the next page', async () => {
  const world = new World();
  const { sf, decision } = await open(world);
  decision.items[0].addToCart();
  sf.close();
  await world.advance(60_000);
  assert.equal(world.signalRequests().length, 0);
  assert.equal(stored(world).length, 1);
  world.page().storefront();
  await world.advance(60_000);
  assert.equal(world.counted.size, 1);
});
