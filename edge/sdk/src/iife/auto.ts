import { auto } from '../auto.js';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, auto };
