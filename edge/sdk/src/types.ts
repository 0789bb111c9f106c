// The public surface. Names of the wire (edge/openapi.yaml) are kept where an object of the wire is passed on.

export type Consent = 'full' | 'anonymous' | 'off';

export interface Options {
  /** The service, for example https://storefront.example. */
  baseUrl: string;
  connectionId: string;
  /** The storefront key, spk_…; it is public. */
  key: string;
  /** Default 'full', and 'anonymous' when the browser sends Global Privacy Control. */
  consent?: Consent;
  /** Default true: with Global Privacy Control, 'full' becomes 'anonymous'. */
  respectGPC?: boolean;
  /** vis_ and 1 to 64 of [A-Za-z0-9_-]; default a random one in storage. Never an e-mail address or a telephone number. */
  visitorId?: string | (() => string);
  /** Default 'local'. Storage that fails is replaced by memory. */
  storage?: 'local' | 'memory';
  /** 'auto' avoids preflight requests: text/plain with the key in the query. 'header': JSON with Authorization. */
  auth?: 'auto' | 'header';
  onResult?: (r: Result) => void;
  /** Writes each result to the console. */
  debug?: boolean;
}

/** A line of a cart or an order. `product` and `variant` are the shop's own ids. */
export interface Line {
  itemId?: string;
  variantId?: string;
  product?: string;
  variant?: string;
  quantity?: number;
  /** Default: the Decision whose item was clicked or added last. */
  decision?: string;
}

export interface RecommendOptions {
  itemId?: string;
  product?: string;
  cart?: Line[];
  limit?: number;
  expand?: 'item';
  /** Default 5,000. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface Storefront {
  recommend(placement: string, o?: RecommendOptions): Promise<Decision>;
  /** Takes over a Decision that the shop's server asked for. */
  adopt(decision: DecisionJSON): Decision;
  /** Reads an item; null when there is none. Never answers an older refresh_revision after a newer one. */
  item(id: { itemId: string } | { product: string }): Promise<CatalogAggregate | null>;
  /** These return the signal's id, or '' when no Decision led to the item. */
  addToCart(l: Line): string;
  removeFromCart(l: Line): string;
  updateQuantity(l: Line & { quantity: number }): string;
  /** Returns the ids of the signals: one for each line to which a Decision led. */
  purchase(o: { order: string; lines: Line[] }): string[];
  consent(c: Consent): void;
  /** What led to the cart's items, in at most 255 characters, for an attribute of the cart. */
  attribution(): string;
  /** Sends what waits; resolves when it is sent or cannot be sent now. */
  flush(): Promise<Stats>;
  stats(): Stats;
  on(e: 'result' | 'drop', f: (r: Result) => void): () => void;
  on(e: 'state', f: (s: Stats) => void): () => void;
  /** Ends timers and listeners. What waits stays in storage. */
  close(): void;
}

export interface Decision {
  id: string;
  placement: string;
  servedAt: string;
  source: 'engine' | 'fallback';
  items: DecisionItem[];
  /** The shopper saw the list. Counts once, whatever is reloaded; null while it cannot be told. */
  impression(): string | null;
  /** Tells the impression when half of the element was in view for a second. Returns a function that stops. */
  observe(el: Element): () => void;
}

export interface DecisionItem {
  position: number;
  itemId: string;
  variantId?: string;
  item?: Card;
  click(): string;
  addToCart(o?: Line): string;
  dismiss(): string;
}

export interface Result {
  signalId: string;
  type: SignalType;
  status: 'accepted' | 'duplicate' | 'rejected' | 'expired' | 'evicted' | 'malformed';
  reason?: string;
  /** Requests that carried the signal, of this page. */
  attempts: number;
  /** From the call to the result. */
  ms: number;
}

export interface Stats {
  waiting: number;
  inFlight: number;
  /** Requests that carried signals. */
  requests: number;
  /** Signals that were sent once more. */
  resent: number;
  accepted: number;
  duplicate: number;
  rejected: number;
  /** Expired, evicted or malformed. */
  dropped: number;
  storage: 'local' | 'memory';
  consent: Consent;
  /** The status (401, 403, 404, 405, 410) after which this page sends no more, 1 after close(); else 0. */
  stopped: number;
  /** Milliseconds until the service may be asked again; else 0. */
  pausedMs: number;
}

export type SignalType =
  | 'impression' | 'click' | 'dismiss' | 'add_to_cart' | 'remove_from_cart' | 'update_quantity' | 'purchase';

export type LocalizedText = Record<string, string>;
export interface Money { amount: string; currency: string }
export interface Media { url: string; alt?: LocalizedText }

/** What a Decision item carries with expand: 'item', as on the wire. */
export interface Card {
  external_id: string;
  title: LocalizedText;
  url?: LocalizedText;
  image?: Media;
  price?: Money;
  promotional_price?: Money;
  availability: { variant_external_id: string; sellable?: string; quantity?: number }[];
  refresh_revision: number;
}

/** A Decision as on the wire. */
export interface DecisionJSON {
  decision_id: string;
  placement: string;
  served_at: string;
  source: 'engine' | 'fallback';
  items: { position: number; item_id: string; variant_id?: string; variant_external_id?: string; item?: Card }[];
}

/** An item as on the wire; edge/openapi.yaml describes its members. */
export interface CatalogAggregate {
  item: { item_id: string; external_id: string; title: LocalizedText; status: string; [member: string]: unknown };
  variants: { variant_id: string; external_id: string; [member: string]: unknown }[];
  availability: { variant_id: string; sellable?: string; as_of?: string; quantity?: number }[];
  refresh_revision: number;
}
