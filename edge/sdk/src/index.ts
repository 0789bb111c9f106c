export { storefront } from './client.js';
export { derive } from './ident.js';
export type * from './types.js';
