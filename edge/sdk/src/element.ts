import type { Card, DecisionItem, LocalizedText, Storefront } from './types.js';

const text = (t: LocalizedText | undefined, languages: string[]): string => {
  for (const language of languages) {
    const found = t?.[language] ?? t?.[language.split('-')[0]!];
    if (found) return found;
  }
  return Object.values(t ?? {})[0] ?? '';
};

const price = (c: Card, languages: string[]): string => {
  const { amount, currency } = c.promotional_price ?? c.price ?? {};
  return amount ? new Intl.NumberFormat(languages, { style: 'currency', currency }).format(+amount) : '';
};

/**
 * Defines <sf-recommendations placement="home" limit="8"><template>…</template></sf-recommendations>. The template is
 * copied for each item of the Decision; in the copy, data-sf="title", "price", "image" and "link" are filled in, and
 * a click on data-sf="add" or "dismiss" adds to the cart or dismisses. Items of which the service knows no card are
 * left out. Attributes: placement, limit, product. Event: sf-ready, with the Decision.
 */
export function defineElement(sf: Storefront, name = 'sf-recommendations'): void {
  customElements.define(name, class extends HTMLElement {
    private stop_?: () => void;

    async connectedCallback() {
      const template = this.querySelector('template');
      if (!template || this.stop_) return;
      this.stop_ = () => {};
      try {
        const decision = await sf.recommend(this.getAttribute('placement') ?? 'home', {
          limit: +(this.getAttribute('limit') ?? 8), expand: 'item', product: this.getAttribute('product') ?? undefined,
        });
        const languages = [document.documentElement.lang, ...navigator.languages].filter(Boolean);
        for (const item of decision.items) if (item.item) this.append(this.card_(template, item, item.item, languages));
        this.stop_ = decision.observe(this);
        this.dispatchEvent(new CustomEvent('sf-ready', { bubbles: true, detail: decision }));
      } catch (e) {
        this.dispatchEvent(new CustomEvent('sf-error', { bubbles: true, detail: e }));
      }
    }

    disconnectedCallback() {
      this.stop_?.();
    }

    private card_(template: HTMLTemplateElement, item: DecisionItem, card: Card, languages: string[]): Node {
      const copy = template.content.cloneNode(true) as DocumentFragment;
      const all = (what: string) => copy.querySelectorAll<HTMLElement>(`[data-sf="${what}"]`);
      all('title').forEach((el) => (el.textContent = text(card.title, languages)));
      all('price').forEach((el) => (el.textContent = price(card, languages)));
      all('image').forEach((el) => {
        if (card.image) el.setAttribute('src', card.image.url);
        el.setAttribute('alt', text(card.image?.alt ?? card.title, languages));
      });
      all('link').forEach((el) => {
        const url = text(card.url, languages);
        if (/^(https?:|\/)/.test(url)) el.setAttribute('href', url);
        el.addEventListener('click', () => item.click());
      });
      all('add').forEach((el) => el.addEventListener('click', () => item.addToCart()));
      all('dismiss').forEach((el) => {
        const root = copy.firstElementChild;
        el.addEventListener('click', () => {
          item.dismiss();
          root?.remove();
        });
      });
      return copy;
    }
  });
}
