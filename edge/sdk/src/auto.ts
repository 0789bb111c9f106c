import type { Decision, DecisionJSON, Storefront } from './types.js';

/**
 * Measures shelves that the shop's server rendered. An element with data-sf-decision is a shelf: its value is the
 * Decision as JSON. Elements in it with data-sf-item (and data-sf-position where an item stands twice) are its items:
 * a click on one is a click, and on one of data-sf-add or data-sf-dismiss in it is that. Returns a function that stops.
 */
export function auto(sf: Storefront, root: ParentNode & Node = document): () => void {
  const shelves = new Map<Element, [decision: Decision, stop: () => void]>();

  const look = () => {
    shelves.forEach(([, stop], el) => {
      if (el.isConnected) return;
      stop();
      shelves.delete(el);
    });
    root.querySelectorAll<HTMLElement>('[data-sf-decision]').forEach((el) => {
      if (shelves.has(el)) return;
      try {
        const decision = sf.adopt(JSON.parse(el.dataset.sfDecision!) as DecisionJSON);
        shelves.set(el, [decision, decision.observe(el)]);
      } catch (e) {
        console.error('storefront: data-sf-decision', e);
        shelves.set(el, [sf.adopt({ items: [] } as never), () => {}]);
      }
    });
  };

  const click = (e: Event) => {
    const target = e.target as Element;
    const el = target.closest<HTMLElement>('[data-sf-item]');
    const shelf = el?.closest('[data-sf-decision]');
    const { sfItem, sfPosition } = el?.dataset ?? {};
    const item = shelf && shelves.get(shelf)?.[0].items.find(
      (i) => i.itemId === sfItem && (sfPosition === undefined || i.position === +sfPosition),
    );
    if (!item) return;
    if (target.closest('[data-sf-dismiss]')) item.dismiss();
    else if (target.closest('[data-sf-add]')) item.addToCart();
    else item.click();
  };

  const observer = new MutationObserver(look);
  observer.observe(root, { childList: true, subtree: true });
  root.addEventListener('click', click, true);
  look();
  return () => {
    observer.disconnect();
    root.removeEventListener('click', click, true);
    shelves.forEach(([, stop]) => stop());
  };
}
