// What the SDK does with each answer of operation 1 (README, "Answers").
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { World } from './world.mjs';

// start returns a page that has a Decision.
async function start(options) {
  const world = new World();
  const page = world.page(options?.page);
  const results = [];
  const sf = page.storefront({ onResult: (r) => results.push(r), ...options });
  const [decision] = await Promise.all([sf.recommend('home', { limit: 60 }), world.advance(10)]);
  return { world, page, sf, results, decision, stored: () => [...world.data.keys()].filter((k) => k.includes('.sig_')) };
}

const results = (request, change = (r) => r) => ({
  status: 202,
  body: JSON.stringify({ results: change(request.signals.map((s, index) => ({ index, signal_id: s.signal_id, status: 'accepted' }))) }),
});

test('each position of a 202 ends its signal', async () => {
  const { world, sf, decision, results: got, stored } = await start();
  const ids = [decision.items[0].addToCart(), decision.items[1].addToCart(), decision.items[2].addToCart()];
  world.counted.set(ids[1], 1);
  world.rejects.add(ids[2]);
  assert.equal(stored().length, 3);
  await world.advance(100);
  assert.deepEqual(stored(), []);
  const byId = Object.fromEntries(got.map((r) => [r.signalId, r]));
  assert.equal(byId[ids[0]].status, 'accepted');
  assert.equal(byId[ids[1]].status, 'duplicate');
  assert.equal(byId[ids[2]].status, 'rejected');
  assert.equal(byId[ids[2]].reason, 'unknown_decision');
  assert.equal(byId[ids[0]].attempts, 1);
  assert.deepEqual([sf.stats().accepted, sf.stats().duplicate, sf.stats().rejected], [1, 1, 1]);
});

test('a signal stays until an answer names it', async () => {
  const { world, decision, stored } = await start();
  world.script.push('hang');
  decision.items[0].addToCart();
  await world.advance(5000);
  assert.equal(stored().length, 1);
});

for (const [name, answer] of Object.entries({
  'of the wrong length': (r) => results(r, (all) => all.slice(1)),
  'that is longer': (r) => results(r, (all) => [...all, all[0]]),
  'whose results are in another order': (r) => results(r, (all) => all.reverse()),
  'with a status that nobody knows': (r) => results(r, (all) => all.map((x) => ({ ...x, status: 'deferred' }))),
  'that is HTML': () => ({ status: 202, body: '<html>Please log in</html>' }),
  'that was cut': () => ({ status: 202, body: '{"results":[{"ind', cut: true }),
  'without results': () => ({ status: 202, body: 'null' }),
})) {
  test(`a 202 ${name} removes nothing`, async () => {
    const { world, sf, decision, stored } = await start();
    world.script.push(answer);
    const ids = [decision.items[0].addToCart(), decision.items[1].addToCart()];
    await world.advance(60);
    assert.equal(stored().length, 2);
    assert.equal(sf.stats().accepted, 0);
    await world.advance(2000);
    assert.deepEqual(stored(), []);
    assert.deepEqual(ids.map((id) => world.counted.get(id)), [1, 1]);
  });
}

for (const status of [200, 204, 302, 402, 408, 418, 500, 502, 503, 504]) {
  test(`a ${status} keeps everything and backs off`, async () => {
    const { world, decision, stored } = await start();
    world.script.push({ status, body: '' }, { status, body: '' });
    decision.items[0].addToCart();
    await world.advance(10);
    assert.equal(stored().length, 1);
    await world.advance(980);
    assert.equal(world.signalRequests().length, 1, 'before a second');
    await world.advance(20);
    assert.equal(world.signalRequests().length, 2);
    await world.advance(1970);
    assert.equal(world.signalRequests().length, 2, 'before two seconds');
    await world.advance(40);
    assert.equal(world.signalRequests().length, 3);
    assert.deepEqual(stored(), []);
  });
}

test('a resend has the same ids and bytes', async () => {
  const { world, decision } = await start();
  world.script.push('network', { status: 500 });
  decision.items[0].addToCart();
  decision.items[1].click();
  await world.advance(10_000);
  const bodies = world.signalRequests().map((r) => r.body);
  assert.equal(bodies.length, 3);
  assert.equal(bodies[1], bodies[0]);
  assert.equal(bodies[2], bodies[0]);
});

test('an answer that does not come within ten seconds is no answer', async () => {
  const { world, decision, stored } = await start();
  world.script.push('hang');
  decision.items[0].addToCart();
  await world.advance(10_040);
  assert.equal(world.signalRequests().length, 1);
  await world.advance(2000);
  assert.equal(world.signalRequests().length, 2);
  assert.deepEqual(stored(), []);
});

test('backing off ends at five minutes, and a 202 resets it', async () => {
  const { world, page, decision, stored } = await start();
  world.script = Array(15).fill({ status: 500 });
  decision.items[0].addToCart();
  await world.advance(2 ** 8 * 1000 + 5 * 300_000);
  const before = world.signalRequests().length;
  await world.advance(299_000);
  assert.ok(world.signalRequests().length - before <= 1);
  await world.advance(10 * 300_000);
  assert.deepEqual(stored(), []);
  world.script.push({ status: 500 });
  decision.items[1].addToCart();
  await world.advance(1200);
  assert.equal(page.gone, false);
  assert.deepEqual(stored(), []);
});

test('a 400 halves the batch until the bad signal is alone', async () => {
  const { world, sf, decision, results: got, stored } = await start();
  const ids = Array.from({ length: 20 }, (_, i) => decision.items[i].addToCart());
  const bad = ids[13];
  const judge = (r) => r.signals.some((s) => s.signal_id === bad) ? { status: 400, body: '{"code":"invalid_request"}' } : undefined;
  world.script = Array(40).fill(judge);
  await world.advance(5000);
  assert.deepEqual(stored(), []);
  assert.deepEqual(got.filter((r) => r.status !== 'accepted').map((r) => [r.signalId, r.status]), [[bad, 'malformed']]);
  assert.equal(sf.stats().dropped, 1);
  assert.ok(world.logs.some(([level]) => level === 'error'));
});

for (const status of [413, 422]) {
  test(`a ${status} makes batches smaller`, async () => {
    const { world, decision, stored } = await start();
    for (let i = 0; i < 40; i++) decision.items[i].addToCart();
    const judge = (r) => r.signals.length > 7 ? { status, body: '{"code":"x","max_signals_per_batch":7}' } : undefined;
    world.script = Array(100).fill(judge);
    await world.advance(10_000);
    assert.deepEqual(stored(), []);
    assert.equal(world.counted.size, 40);
    if (status === 422) assert.equal(world.signalRequests()[1].signals.length, 7);
  });
}

for (const status of [401, 403, 404, 405, 410]) {
  test(`a ${status} stops this page, keeps the signals, and warns once`, async () => {
    const { world, sf, decision, stored } = await start({ auth: 'header' });
    world.script.push({ status, body: '{"detail":"no"}' });
    decision.items[0].addToCart();
    await world.advance(100);
    decision.items[1].addToCart();
    await world.advance(3_600_000);
    assert.equal(world.signalRequests().length, 1);
    assert.equal(stored().length, 2);
    assert.equal(sf.stats().stopped, status);
    assert.equal(world.logs.filter(([level]) => level === 'warn').length, 1);
    // The next page load tries again.
    const next = world.page();
    next.storefront();
    await world.advance(60_000);
    assert.deepEqual(stored(), []);
  });
}

test('a 401 of the simple form is tried once with the header form, which the session remembers', async () => {
  const session = new Map();
  const { world, decision, page, stored } = await start({ page: { session } });
  const judge = (r) => r.url.includes('?key=') ? { status: 401, body: '{"code":"unauthorized"}' } : undefined;
  world.script = Array(10).fill(judge);
  decision.items[0].addToCart();
  await world.advance(100);
  const [simple, header] = world.signalRequests();
  assert.ok(simple.url.endsWith('/v1/connections/con_a/storefront-signals?key=spk_k'));
  assert.deepEqual(Object.keys(simple.headers), []);
  assert.equal(header.url, 'https://edge.example/v1/connections/con_a/storefront-signals');
  assert.equal(header.headers.Authorization, 'Bearer spk_k');
  assert.equal(header.headers['Content-Type'], 'application/json');
  assert.equal(header.body, simple.body);
  assert.deepEqual(stored(), []);
  page.close();
  const next = world.page({ session });
  const [again] = await Promise.all([next.storefront().recommend('home'), world.advance(10)]);
  again.items[0].addToCart();
  await world.advance(100);
  assert.equal(world.signalRequests().at(-1).headers.Authorization, 'Bearer spk_k');
  assert.equal(world.signalRequests().length, 3);
});

test('a 401 of both forms stops the page', async () => {
  const { world, sf, decision, stored } = await start();
  world.script = Array(10).fill({ status: 401, body: '' });
  decision.items[0].addToCart();
  await world.advance(600_000);
  assert.equal(world.signalRequests().length, 2);
  assert.equal(sf.stats().stopped, 401);
  assert.equal(stored().length, 1);
});

for (const status of [429, 503]) {
  test(`no tab sends before Retry-After of a ${status}`, async () => {
    const { world, decision, sf } = await start();
    const other = world.page();
    const [theirs] = await Promise.all([other.storefront().recommend('cart'), world.advance(10)]);
    world.script.push({ status, headers: { 'Retry-After': '30' }, body: '{}' });
    decision.items[0].addToCart();
    await world.advance(60);
    const before = world.signalRequests().length;
    assert.equal(before, 1);
    theirs.items[0].addToCart();
    decision.items[1].addToCart();
    sf.flush();
    other.hide();
    other.show();
    other.fire('online');
    await world.advance(29_900);
    assert.equal(world.signalRequests().length, before);
    assert.ok(sf.stats().pausedMs > 0);
    await world.advance(10_000);
    assert.equal(world.counted.size, 3);
  });
}

test('a Retry-After may be a date', async () => {
  const { world, decision } = await start();
  world.script.push({ status: 503, headers: { 'Retry-After': new Date(world.now + 60_000).toUTCString() }, body: '{}' });
  decision.items[0].addToCart();
  await world.advance(58_000);
  assert.equal(world.signalRequests().length, 1);
  await world.advance(20_000);
  assert.equal(world.counted.size, 1);
});

for (const value of ['Fri, 31 Dec 1999 23:59:59 GMT', 'soon', '0']) {
  test(`a Retry-After of ${value} leads to the usual pause`, async () => {
    const { world, decision, sf } = await start();
    world.script.push({ status: 503, headers: { 'Retry-After': value }, body: '{}' });
    decision.items[0].addToCart();
    await world.advance(60);
    assert.equal(sf.stats().pausedMs, 0);
    await world.advance(1000);
    assert.equal(world.counted.size, 1);
  });
}

test('a Retry-After of more than an hour counts as an hour', async () => {
  const { world, decision } = await start();
  world.script.push({ status: 503, headers: { 'Retry-After': '31536000' }, body: '{}' });
  decision.items[0].addToCart();
  await world.advance(3_599_000);
  assert.equal(world.signalRequests().length, 1);
  await world.advance(1_000_000);
  assert.equal(world.signalRequests().length, 2);
});

test('forty 503s in a row leave room for keepalive, since every body is read', async () => {
  const { world, page, decision } = await start();
  for (let i = 0; i < 20; i++) decision.items[i].addToCart();
  world.script = Array(40).fill({ status: 503, headers: { 'Cache-Control': 'no-store', 'Retry-After': '1' }, body: '{"code":"signals_unavailable"}' });
  await world.advance(120_000);
  const sent = world.signalRequests();
  assert.equal(sent.length, 41);
  assert.ok(sent.every((r) => r.keepalive && !r.refused));
  assert.equal(page.keepalive, 0);
  assert.equal(world.counted.size, 20);
});

test('the request is one that needs no preflight', async () => {
  const { world, decision } = await start();
  decision.items[0].addToCart();
  await world.advance(100);
  const [request] = world.signalRequests();
  assert.equal(request.method, 'POST');
  assert.equal(typeof request.body, 'string');
  assert.deepEqual(Object.keys(request.headers), []);
  assert.equal(request.credentials, 'omit');
  assert.equal(request.priority, 'low');
  assert.equal(request.keepalive, true);
});
