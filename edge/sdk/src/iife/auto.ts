import { auto } from '../auto';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, auto };
