// The snippets of the README work as they stand.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import vm from 'node:vm';
import { World } from './world.mjs';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const block = (language) => readme.split('```' + language + '\n')[1].split('```')[0];

// element is as much of an HTML element as the snippet uses.
const element = () => ({ children: [], append(...c) { this.children.push(...c); }, appendChild(c) { this.children.push(c); return c; } });

test('the shelf of the README is measured', async () => {
  const world = new World();
  const page = world.page();
  const shelf = element();
  Object.assign(page.document, { querySelector: (s) => s === '#shelf' && shelf, createElement: element });
  const [, script] = /<script>([^]*)<\/script>/.exec(block('html'));
  vm.runInContext(script, page.global);
  await world.advance(10);
  assert.equal(shelf.children.length, 4);
  page.look(0.6);
  await world.advance(3000);
  shelf.children[0].children[0].onclick();
  await world.advance(100);
  vm.runInContext('sf', page.global).addToCart({ product: '1', decision: 'dec_home' }); // as if the item was of the shelf
  vm.runInContext(block('js'), page.global);
  await world.advance(100);
  const types = world.signalRequests().flatMap((r) => r.signals).map((s) => s.type);
  assert.deepEqual(types.sort(), ['add_to_cart', 'add_to_cart', 'click', 'impression', 'purchase']);
});
