import { storefront } from '../client.js';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, storefront };
