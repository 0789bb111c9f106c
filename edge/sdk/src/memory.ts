import type { Store } from './store';

// Which Decision led to an item, and to the lines of an order, so that a page that is opened again derives the same
// ids. One key for each, so that tabs overwrite nothing of each other:
//
//   sf1.<connection>.i.<item_id>   when, a space, the Decision of the last click or add
//   sf1.<connection>.o.<order>     when, a space, Decisions by item and variant
export interface Memory {
  remember_(item: string, decision: string): void;
  decision_(item: string): string | undefined;
  order_(order: string): Record<string, string>;
  rememberOrder_(order: string, decisions: Record<string, string>): void;
  attribution_(): string;
}

const ITEMS = 50;
const LIFE = 30 * 864e5;

export function openMemory(prefix: string, store: Store): Memory {
  const items = prefix + 'i.';
  const orders = prefix + 'o.';

  const get = (key: string) => (store.get_(key) ?? '').split(/ (.*)/s)[1];
  const time = (key: string) => parseInt(store.get_(key)!);
  const newest = () =>
    store.keys_().filter((key) => key.startsWith(items)).sort((a, b) => time(b) - time(a));
  const set = (key: string, value: string) => {
    store.set_(key, Date.now() + ' ' + value);
    const old = (k: string) => k.startsWith(orders) && !(Date.now() - time(k) < LIFE);
    [...store.keys_().filter(old), ...newest().slice(ITEMS)].forEach(store.remove_);
  };

  return {
    remember_: (item, decision) => set(items + item, decision),
    decision_: (item) => (Date.now() - time(items + item) < LIFE ? get(items + item) : undefined),
    order_(order) {
      try {
        return JSON.parse(get(orders + order)!);
      } catch {
        return {};
      }
    },
    rememberOrder_: (order, decisions) => set(orders + order, JSON.stringify(decisions)),
    // 1;<decision>:<item>,<item>;<decision>:<item>: newest first, without prefixes, of an item 8 characters.
    attribution_() {
      const groups = new Map<string, string>();
      let text = '1';
      for (const key of newest()) {
        const decision = get(key)!.slice(4);
        const item = key.slice(items.length + 4).slice(0, 8);
        const held = groups.get(decision);
        groups.set(decision, held ? held + ',' + item : decision + ':' + item);
        const next = ['1', ...groups.values()].join(';');
        if (next.length > 255) break;
        text = next;
      }
      return text;
    },
  };
}
