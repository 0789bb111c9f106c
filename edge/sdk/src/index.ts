export { storefront } from './client';
export type * from './types';
