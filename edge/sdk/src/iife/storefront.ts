import { storefront } from '../client';

Object.assign(((globalThis as { Storefront?: object }).Storefront ??= {}), { storefront });
