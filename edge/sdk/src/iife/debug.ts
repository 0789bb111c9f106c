import { debug } from '../debug.js';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, debug };
