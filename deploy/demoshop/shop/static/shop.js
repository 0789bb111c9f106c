// The whole integration of the demo shop with Storefront: shelves, clicks, the cart, the purchase, consent.
'use strict';

const config = JSON.parse(document.getElementById('storefront-config').textContent);
const sf = Storefront.storefront({ ...config, consent: localStorage.getItem('consent') || 'full' });
window.sf = sf; // for the console, and for <sf-recommendations>

const english = (text) => (text && (text.en || Object.values(text)[0])) || '';

// shelf asks for a recommendation and shows it: one request, since each item carries its card.
async function shelf(list) {
  const { placement, limit, item } = list.dataset;
  const decision = await sf.recommend(placement, { limit: Number(limit), itemId: item, expand: 'item' });
  for (const recommended of decision.items) {
    if (!recommended.item) continue; // the edge did not have it at hand
    const card = list.querySelector('template').content.cloneNode(true);
    const price = recommended.item.promotional_price || recommended.item.price;
    card.querySelector('.name').textContent = english(recommended.item.title);
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

// The cart: the call comes first, then the form goes its ordinary way. No answer is awaited.
document.addEventListener('submit', ({ target: form }) => {
  if (!form.dataset.signal) return;
  const value = (name) => (form.elements[name] ? form.elements[name].value : undefined);
  sf[form.dataset.signal]({
    itemId: value('item'), variantId: value('variant') || undefined, decision: value('decision') || undefined,
    quantity: value('quantity') === undefined ? undefined : Number(value('quantity')),
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
