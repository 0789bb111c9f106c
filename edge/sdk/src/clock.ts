import type { Store } from './store';

// A Clock tells the shopper's time. The page's clock only goes forward, over pages too; a served Decision corrects
// it when it is wrong by more than two seconds.
export interface Clock {
  page_(): number;
  now_(): number;
  /** Corrects the clock by a Decision that was asked for at `asked` of page_. */
  correct_(asked: number, servedAt: string): void;
}

const DAY = 864e5;

export function openClock(prefix: string, local: Store, session: Store): Clock {
  const began = performance.now();
  const last = +local.get_(prefix + 'clock')!;
  let base = performance.timeOrigin + began;
  if (last > base && last < base + DAY) base = last;
  let skew = +session.get_(prefix + 'skew')!;
  const page_ = () => base + performance.now() - began;
  return {
    page_,
    now_() {
      local.set_(prefix + 'clock', '' + Math.ceil(page_()));
      return page_() + skew;
    },
    correct_(asked, servedAt) {
      const off = Date.parse(servedAt) - (asked + page_()) / 2;
      skew = Math.abs(off) > 2000 ? off : 0;
      session.set_(prefix + 'skew', '' + skew);
    },
  };
}
