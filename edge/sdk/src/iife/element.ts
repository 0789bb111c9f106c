import { defineElement } from '../element';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, defineElement };
