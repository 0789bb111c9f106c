// The whole integration of the demo shop with Storefront: shelves, clicks, the cart, the purchase, consent.
'use strict';

const config = JSON.parse(document.getElementById('storefront-config').textContent);
const sf = Storefront.storefront({ ...config, consent: localStorage.getItem('consent') || 'full' });
window.sf = sf; // for the console, and for <sf-recommendations>

const english = (text) => (text && (text.en || Object.values(text)[0])) || '';

// details are title and price of a recommended item. Its card is in the answer, unless the edge did not have it at
// hand; then the item is read.
async function details({ itemId, item }) {
  if (item) return { title: item.title, price: item.promotional_price || item.price };
  const read = await sf.item({ itemId });
  const { price, promotional_price: promotion } = read.variants[0] || {};
  return { title: read.item.title, price: promotion || price };
}

// shelf asks for a recommendation and shows it.
async function shelf(list) {
  const { placement, limit, item } = list.dataset;
  const decision = await sf.recommend(placement, { limit: Number(limit), itemId: item, expand: 'item' });
  for (const recommended of decision.items) {
    const { title, price } = await details(recommended);
    const card = list.querySelector('template').content.cloneNode(true);
    card.querySelector('.name').textContent = english(title);
    card.querySelector('.price').textContent = price ? price.currency + ' ' + price.amount : '';
    card.querySelector('img').src = '/picture/' + recommended.itemId + '.svg';
    const link = card.querySelector('a');
    link.href = '/product/' + recommended.itemId + '?decision=' + decision.id;
    link.addEventListener('click', () => recommended.click()); // the browser goes on at once
    list.append(card);
  }
  decision.observe(list); // the impression: half of the shelf was in view for a second
}

for (const list of document.querySelectorAll('[data-placement]')) {
  shelf(list).catch(() => { list.hidden = true; }); // a shop without recommendations is still a shop
}

// The element fills in the pictures and links of the catalog. Those of the demo catalog lead to hosts that do not
// exist, so this shop puts its own in their place.
document.addEventListener('sf-ready', ({ target, detail: decision }) => {
  const shown = decision.items.filter((recommended) => recommended.item);
  target.querySelectorAll('a').forEach((link, n) => {
    link.href = '/product/' + shown[n].itemId + '?decision=' + decision.id;
    link.querySelector('img').src = '/picture/' + shown[n].itemId + '.svg';
  });
});
if (Storefront.defineElement) Storefront.defineElement(sf);

// The cart: the call comes first, then the form goes its ordinary way. No answer is awaited.
document.addEventListener('submit', ({ target: form }) => {
  if (!form.dataset.signal) return;
  const { item, variant, decision, quantity } = Object.fromEntries(new FormData(form));
  sf[form.dataset.signal]({
    itemId: item, variantId: variant || undefined, decision: decision || undefined,
    quantity: quantity && Number(quantity),
  });
});

// The purchase: the ids of its signals follow from the order, so a page that is reloaded counts once.
const order = document.getElementById('order');
if (order) sf.purchase(JSON.parse(order.textContent));

// The order carries what led to it, for a checkout that runs on another host.
const attribution = document.querySelector('input[name=attribution]');
if (attribution) attribution.value = sf.attribution();

const consent = document.getElementById('consent');
if (consent) {
  consent.elements.consent.value = localStorage.getItem('consent') || 'full';
  consent.addEventListener('change', () => {
    localStorage.setItem('consent', consent.elements.consent.value);
    sf.consent(consent.elements.consent.value);
  });
}
