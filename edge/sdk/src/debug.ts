import type { Result, Storefront } from './types.js';

/** Shows what the SDK does in a corner of the page, when the page's address has ?sf_debug=1. */
export function debug(sf: Storefront): () => void {
  if (new URLSearchParams(location.search).get('sf_debug') !== '1') return () => {};
  const box = document.createElement('pre');
  box.setAttribute('role', 'status');
  box.style.cssText = 'position:fixed;right:8px;bottom:8px;z-index:2147483647;margin:0;padding:8px;max-width:90vw;' +
    'max-height:40vh;overflow:auto;font:12px/1.4 monospace;color:#fff;background:#222';
  const lines: string[] = [];
  const show = () => {
    const s = sf.stats();
    box.textContent = [
      `storefront: ${s.waiting} waiting, ${s.inFlight} sent, ${s.accepted} accepted, ${s.duplicate} duplicate, ` +
        `${s.rejected} rejected, ${s.dropped} dropped · ${s.storage} · ${s.consent}` +
        (s.stopped ? ` · stopped by ${s.stopped}` : '') + (s.pausedMs ? ` · paused ${Math.ceil(s.pausedMs / 1e3)} s` : ''),
      ...lines,
    ].join('\n');
  };
  const off = sf.on('result', (r: Result) => {
    lines.unshift(`${r.type} ${r.signalId} ${r.status} ${r.reason ?? ''} ${r.ms} ms`);
    lines.length = Math.min(lines.length, 20);
  });
  const timer = setInterval(show, 500);
  document.body.append(box);
  show();
  return () => {
    off();
    clearInterval(timer);
    box.remove();
  };
}
