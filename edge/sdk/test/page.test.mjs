// What a page does: consent, time, recommendations, items, attribution.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { World } from './world.mjs';

async function open(world, o = {}, at = {}) {
  const page = world.page(at);
  const sf = page.storefront(o);
  const [decision] = await Promise.all([sf.recommend('home', { limit: 5 }), world.advance(10)]);
  return { page, sf, decision };
}
const keys = (world) => [...world.data.keys()];

test('nothing is sent before something is told', async () => {
  const world = new World();
  world.page().storefront();
  await world.advance(60_000);
  assert.equal(world.requests.length, 0);
  assert.deepEqual(keys(world), []);
});

test('off: no request and no key, and full → off leaves no key', async () => {
  const world = new World();
  const session = new Map();
  const { page, sf, decision } = await open(world, {}, { session });
  world.script.push('hang');
  decision.items[0].addToCart();
  assert.ok(keys(world).length > 3);
  sf.consent('off');
  assert.deepEqual([keys(world), [...session.keys()]], [[], []]);
  assert.equal(decision.items[1].addToCart(), '');
  assert.equal(decision.impression(), null);
  assert.equal(sf.attribution(), '1');
  await assert.rejects(sf.recommend('home'));
  const before = world.requests.length;
  await world.advance(60_000);
  page.close();
  const off = world.page();
  off.storefront({ consent: 'off' }).addToCart({ itemId: 'itm_1', decision: 'dec_d' });
  await world.advance(60_000);
  off.close();
  assert.equal(world.requests.length, before);
  assert.deepEqual(keys(world), []);
});

for (const [name, o, at] of [
  ['anonymous', { consent: 'anonymous' }, {}],
  ['Global Privacy Control', {}, { gpc: true }],
]) {
  test(`${name}: no visitor, no key, and signals go out`, async () => {
    const world = new World();
    const session = new Map();
    const { sf, decision } = await open(world, o, { ...at, session });
    const id = decision.items[0].addToCart();
    decision.items[1].click();
    assert.equal(sf.stats().consent, 'anonymous');
    assert.deepEqual([keys(world), [...session.keys()]], [[], []]);
    await world.advance(100);
    assert.equal(world.counted.get(id), 1);
    assert.ok(world.requests.every((r) => !r.body.includes('vis_') && !r.body.includes('ses_')));
  });
}

test('respectGPC: false keeps full', async () => {
  const world = new World();
  const { sf } = await open(world, { respectGPC: false }, { gpc: true });
  assert.equal(sf.stats().consent, 'full');
});

test('full → anonymous sends what waits from memory and leaves no key', async () => {
  const world = new World();
  const { sf, decision } = await open(world);
  const id = decision.items[0].addToCart();
  sf.consent('anonymous');
  assert.deepEqual(keys(world), []);
  await world.advance(100);
  assert.equal(world.counted.get(id), 1);
});

test('a visitor that looks like an e-mail address or a telephone number is refused at the call', async () => {
  const world = new World();
  for (const visitorId of ['ana@shop.example', 'vis_ana@shop.example', 'vis_5491155554444', 'vis_549-115-555-4444', '+5491155554444', 'vis_', 'vis_' + 'x'.repeat(65)])
    assert.throws(() => world.page().storefront({ visitorId }), { name: 'TypeError' }, visitorId);
  world.page().storefront({ visitorId: 'vis_0b6f' });
  const { sf } = await open(world, { visitorId: () => 'vis_customer-17' });
  sf.addToCart({ itemId: 'itm_1', decision: 'dec_d' });
  await world.advance(100);
  assert.equal(world.signalRequests()[0].signals[0].visitor.visitor_id, 'vis_customer-17');
});

test('the random visitor stays over pages', async () => {
  const world = new World();
  for (let i = 0; i < 2; i++) {
    const { page, sf } = await open(world);
    sf.addToCart({ itemId: 'itm_1', decision: 'dec_d' });
    await world.advance(100);
    page.close();
  }
  const [a, b] = world.signalRequests().map((r) => r.signals[0].visitor.visitor_id);
  assert.equal(a, b);
});

for (const hours of [3, -3]) {
  test(`a clock that is ${hours} hours off is right after the first Decision`, async () => {
    const world = new World();
    const { decision } = await open(world, {}, { skew: hours * 36e5 });
    await world.advance(60_000);
    decision.items[0].addToCart();
    const now = world.now;
    await world.advance(100);
    assert.ok(Math.abs(Date.parse(world.signalRequests()[0].signals[0].occurred_at) - now) < 2000);
  });
}

test('a clock that is right within two seconds is believed', async () => {
  const world = new World();
  world.serverSkew = 1500;
  const { decision } = await open(world);
  decision.items[0].addToCart();
  const now = world.now;
  await world.advance(100);
  assert.ok(Math.abs(Date.parse(world.signalRequests()[0].signals[0].occurred_at) - now) < 50);
});

test('time only goes forward, over pages too', async () => {
  const world = new World();
  const first = await open(world);
  for (let i = 0; i < 5; i++) first.decision.items[i].addToCart();
  await world.advance(100);
  const page = world.page({ skew: -60_000 });
  page.storefront().addToCart({ itemId: 'itm_1', decision: 'dec_d' });
  await world.advance(100);
  const times = world.signalRequests().flatMap((r) => r.signals).map((s) => s.occurred_at);
  assert.deepEqual(times, [...new Set(times)].sort());
});

test('client rides on the first signal and on impressions, without query and fragment', async () => {
  const world = new World();
  const { sf } = await open(world, {}, {});
  const page = world.page();
  const own = page.storefront();
  own.addToCart({ itemId: 'itm_1', decision: 'dec_d' });
  own.addToCart({ itemId: 'itm_2', decision: 'dec_d' });
  own.adopt({ decision_id: 'dec_x', placement: 'p', served_at: '', source: 'engine', items: [] }).impression();
  await world.advance(2000);
  const signals = world.signalRequests().flatMap((r) => r.signals).filter((s) => s.type !== 'x');
  assert.deepEqual(signals.map((s) => !!s.client), [true, false, true]);
  assert.equal(signals[0].client.page_url, 'https://shop.example/p/1');
  assert.deepEqual(signals[0].client.languages, ['es-AR', 'en']);
  assert.ok(sf);
});

test('recommend asks for what it is told, and gives the error of the service', async () => {
  const world = new World();
  const { sf } = await open(world);
  await Promise.all([sf.recommend('product', { product: '1', cart: [{ product: '1', variant: '11' }], expand: 'item' }), world.advance(10)]);
  const body = JSON.parse(world.requests.at(-1).body);
  assert.equal(body.item_id, 'itm_32cqvae1mokk7k9mm1e10qphd44gnb66');
  assert.deepEqual(body.cart, [{ item_id: body.item_id, variant_id: 'var_tu3k5riclus16f4tr7938e6c358frqp2', quantity: 1 }]);
  assert.deepEqual(body.expand, ['item']);
  assert.equal(world.requests.at(-1).headers.Authorization, 'Bearer spk_k');
  world.answer = () => ({ status: 429, body: '{"code":"rate_limited"}' });
  await Promise.all([assert.rejects(sf.recommend('home'), { status: 429 }), world.advance(10)]);
});

test('recommend ends with its time-out and with its signal', async () => {
  const world = new World();
  const page = world.page();
  const sf = page.storefront();
  world.answer = () => 'hang';
  await Promise.all([assert.rejects(sf.recommend('home', { timeoutMs: 100 })), world.advance(200)]);
  const stop = new AbortController();
  const asked = assert.rejects(sf.recommend('home', { signal: stop.signal }));
  stop.abort();
  await Promise.all([asked, world.advance(0)]);
});

test('item: null for none, and never an older revision after a newer one', async () => {
  const world = new World();
  const { sf } = await open(world);
  const read = async () => (await Promise.all([sf.item({ product: '1' }), world.advance(10)]))[0];
  assert.equal(await read(), null);
  const answers = [5, 4, 6].map((refresh_revision) => ({ status: 200, body: JSON.stringify({ refresh_revision }) }));
  world.answer = () => answers.shift();
  assert.equal((await read()).refresh_revision, 5);
  assert.equal((await read()).refresh_revision, 5);
  assert.equal((await read()).refresh_revision, 6);
  assert.ok(world.requests.at(-1).url.endsWith('/v1/catalog/items/itm_32cqvae1mokk7k9mm1e10qphd44gnb66'));
});

test('what no Decision led to is no signal', async () => {
  const world = new World();
  const { sf, decision } = await open(world);
  assert.equal(sf.addToCart({ itemId: 'itm_3' }), '');
  decision.items[3].click();
  assert.notEqual(sf.addToCart({ itemId: 'itm_3' }), '');
  sf.updateQuantity({ itemId: 'itm_3', quantity: 0 });
  sf.removeFromCart({ itemId: 'itm_3', quantity: 4 });
  await world.advance(100);
  const byType = Object.fromEntries(world.signalRequests().flatMap((r) => r.signals).map((s) => [s.type, s]));
  assert.equal(byType.update_quantity.quantity, 0);
  assert.ok(!('quantity' in byType.remove_from_cart) && !('quantity' in byType.click));
  assert.equal(byType.click.position, 3);
  assert.equal(byType.add_to_cart.decision_id, 'dec_home');
});

test('attribution is short', async () => {
  const world = new World();
  const { sf } = await open(world);
  for (let d = 0; d < 20; d++) for (let i = 0; i < 3; i++)
    sf.addToCart({ product: `${d}-${i}`, decision: 'dec_' + String(d).padStart(46, 'x') });
  const text = sf.attribution();
  assert.ok(text.length <= 255 && text.length > 180, text);
  assert.match(text, /^1(;[\w-]+:[\w-]{1,8}(,[\w-]{1,8})*)+$/);
});

test('a prerendered page tells nothing', async () => {
  const world = new World();
  const { page, sf, decision } = await open(world, {}, { prerendering: true });
  assert.equal(decision.impression(), null);
  await world.advance(20_000);
  assert.equal(world.signalRequests().length, 0);
  page.document.prerendering = false;
  assert.notEqual(decision.impression(), null);
  await world.advance(20_000);
  assert.equal(world.signalRequests().length, 1);
  assert.ok(sf);
});

test('observe tells the impression when half of the element was in view for a second', async () => {
  const world = new World();
  const { page, decision } = await open(world);
  decision.observe({});
  page.look(0.4);
  await world.advance(3000);
  page.look(0.6);
  await world.advance(900);
  page.look(0.2);
  await world.advance(3000);
  assert.equal(world.signalRequests().length, 0);
  page.hide();
  page.look(0.6);
  await world.advance(3000);
  assert.equal(world.signalRequests().length, 0, 'hidden');
  page.show();
  await world.advance(3000);
  assert.equal(world.counted.size, 1);
  assert.equal(page.observers.size, 0);
});

test('a listener that throws breaks nothing, and one that left hears nothing', async () => {
  const world = new World();
  const { sf, decision } = await open(world, {});
  let heard = 0;
  sf.on('result', () => heard++)();
  sf.on('result', () => heard++);
  decision.items[0].addToCart();
  decision.items[1].addToCart();
  await world.advance(100);
  assert.equal(heard, 2);
});
