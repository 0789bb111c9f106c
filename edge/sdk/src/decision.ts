import type { Decision, DecisionItem, DecisionJSON, Line } from './types';
import type { Fields } from './signal';

// What a Decision does on a page.
export interface Acts {
  impression_(decision: string): string | null;
  /** Mints a signal of an item; `remembered` makes the Decision the item's. */
  item_(type: 'click' | 'dismiss', decision: string, fields: Fields): string;
  add_(line: Line, position: number): string;
}

export function adoptDecision(json: DecisionJSON, acts: Acts): Decision {
  const id = json.decision_id;
  const impression = () => acts.impression_(id);
  return {
    id,
    placement: json.placement,
    servedAt: json.served_at,
    source: json.source,
    items: json.items.map(({ position, item_id, variant_id, item }): DecisionItem => {
      const fields = { item_id, variant_id, position };
      return {
        position,
        itemId: item_id,
        variantId: variant_id,
        item,
        click: () => acts.item_('click', id, fields),
        dismiss: () => acts.item_('dismiss', id, fields),
        addToCart: (o) =>
          acts.add_({ variantId: variant_id, product: item?.external_id, ...o, itemId: item_id, decision: id }, position),
      };
    }),
    impression,
    observe: (el) => observe(el, impression),
  };
}

// observe calls seen when half of el, or of the window, shows el for a second. A page that is hidden or prerendered
// shows nothing.
function observe(el: Element, seen: () => string | null): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const done = () => {
    clearTimeout(timer);
    observer.disconnect();
  };
  const look = () => {
    if (!document.hidden && seen() !== null) done();
    else timer = setTimeout(look, 1000);
  };
  const observer = new IntersectionObserver(
    (changes) => {
      const { intersectionRatio, intersectionRect } = changes[changes.length - 1]!;
      clearTimeout(timer);
      if (intersectionRatio >= 0.5 || intersectionRect.height >= innerHeight / 2) timer = setTimeout(look, 1000);
    },
    { threshold: [0.1, 0.2, 0.3, 0.4, 0.5] },
  );
  observer.observe(el);
  return done;
}
