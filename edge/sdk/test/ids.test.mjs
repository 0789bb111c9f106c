// Ids: those of testdata/ids.json, which Go reads too, and those that pages mint.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { World, dist } from './world.mjs';

const { derive, storefront } = await import(new URL('storefront.mjs', dist));
const vectors = JSON.parse(readFileSync(new URL('../testdata/ids.json', import.meta.url)));

test('the vectors of testdata/ids.json', () => {
  assert.ok(vectors.length >= 10);
  for (const v of vectors) assert.equal(derive(v.prefix, v.connection_id, ...v.parts), v.id, v.what);
});

test('random parts are derived as by another SHA-256', () => {
  for (let i = 0; i < 300; i++) {
    const parts = [randomBytes(i).toString('latin1'), randomBytes(i % 7).toString('hex'), ''];
    const hash = createHash('sha256');
    for (const part of ['itm', ...parts]) {
      const text = Buffer.from(part);
      const size = Buffer.alloc(8);
      size.writeBigUInt64BE(BigInt(text.length));
      hash.update(size).update(text);
    }
    const bits = [...hash.digest().subarray(0, 20)].map((b) => b.toString(2).padStart(8, '0')).join('');
    const want = bits.match(/.{5}/g).map((b) => parseInt(b, 2).toString(32)).join('');
    assert.equal(derive('itm', ...parts), 'itm_' + want);
  }
});

test('Node imports the module without a window', () => {
  assert.equal(globalThis.window, undefined);
  const sf = storefront({ baseUrl: 'https://edge.example', connectionId: 'con_a', key: 'spk_k' });
  const decision = sf.adopt({ decision_id: 'dec_d', placement: 'p', served_at: '2026-11-22T12:00:00Z', source: 'engine', items: [] });
  assert.equal(decision.id, 'dec_d');
  sf.close();
});

async function open(world, o) {
  const page = world.page(o);
  const sf = page.storefront();
  const [decision] = await Promise.all([sf.recommend('home'), world.advance(10)]);
  return { page, sf, decision };
}

test("the shop's own ids lead to ours without a request", async () => {
  const world = new World();
  const { sf } = await open(world);
  const before = world.requests.length;
  const id = sf.addToCart({ product: '1', variant: '11', quantity: 2, decision: 'dec_d' });
  assert.match(id, /^sig_[\w-]{22,64}$/);
  await world.advance(100);
  assert.equal(world.requests.length, before + 1);
  const [signal] = world.signalRequests()[0].signals;
  assert.equal(signal.item_id, 'itm_32cqvae1mokk7k9mm1e10qphd44gnb66');
  assert.equal(signal.variant_id, 'var_tu3k5riclus16f4tr7938e6c358frqp2');
  assert.equal(signal.quantity, 2);
});

test('a thanks page counts once: reloaded, in a second tab, and in a second profile', async () => {
  const world = new World();
  const line = { product: '1', variant: '11', decision: 'dec_d' };
  const told = [];
  for (let i = 0; i < 6; i++) {
    const { page, sf } = await open(world);
    told.push([...sf.purchase({ order: '1001', lines: [line] })]);
    await world.advance(1000);
    page.close();
  }
  world.data.clear();
  const other = await open(world);
  told.push([...other.sf.purchase({ order: '1001', lines: [line] })]);
  await world.advance(1000);
  assert.deepEqual(told, Array(7).fill(['sig_h36ci5dr9t9tit6mr8u600vdrdjpqnuf']));
  assert.equal(world.counted.size, 1);
});

test('a reloaded thanks page remembers which Decision led to the order', async () => {
  const world = new World();
  const { page, sf, decision } = await open(world);
  decision.items[1].click();
  const first = [...sf.purchase({ order: '7', lines: [{ itemId: 'itm_1' }, { itemId: 'itm_none' }] })];
  assert.equal(first.length, 1);
  page.close();
  const b = world.page();
  const again = b.storefront();
  const [cart] = await Promise.all([again.recommend('cart'), world.advance(10)]);
  cart.items[1].click();
  assert.deepEqual([...again.purchase({ order: '7', lines: [{ itemId: 'itm_1' }] })], first);
  assert.notDeepEqual([...again.purchase({ order: '8', lines: [{ itemId: 'itm_1' }] })], first);
});

test('lines of the same variant are one purchase of their sum', async () => {
  const world = new World();
  const { sf } = await open(world);
  const line = { itemId: 'itm_1', decision: 'dec_d' };
  assert.equal(sf.purchase({ order: '7', lines: [line, { ...line, quantity: 2 }] }).length, 1);
  await world.advance(100);
  assert.equal(world.signalRequests()[0].signals[0].quantity, 3);
});

test('an impression counts once for its Decision', async () => {
  const world = new World();
  const { sf, decision } = await open(world);
  const json = { decision_id: 'dec_home', placement: 'home', served_at: decision.servedAt, source: 'engine', items: [] };
  const id = decision.impression();
  assert.equal(decision.impression(), id);
  assert.equal(sf.adopt(json).impression(), id);
  await world.advance(2000);
  const next = await open(world);
  assert.equal(next.decision.impression(), id);
  await world.advance(2000);
  assert.equal(world.counted.get(id), 1);
});
