export { storefront } from './client';
export { derive } from './ident';
export type * from './types';
