import { defineElement } from '../element.js';

const all = globalThis as { Storefront?: object };
all.Storefront = { ...all.Storefront, defineElement };
