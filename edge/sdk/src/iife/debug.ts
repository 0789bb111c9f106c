import { debug } from '../debug';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, debug };
