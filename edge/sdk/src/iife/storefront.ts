import { storefront } from '../client';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, storefront };
