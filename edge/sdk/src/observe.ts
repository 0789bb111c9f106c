/** Calls seen when half of el was in view for a second. A page that is hidden shows nothing. */
export function observe(el: Element, seen: () => string | null): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const later = () => (timer = setTimeout(() => document.hidden || !seen() ? later() : done(), 1e3));
  const done = () => {
    clearTimeout(timer);
    observer.disconnect();
  };
  const observer = new IntersectionObserver(([entry]) => {
    clearTimeout(timer);
    if (entry!.intersectionRatio >= 0.5) later();
  }, { threshold: 0.5 });
  observer.observe(el);
  return done;
}
