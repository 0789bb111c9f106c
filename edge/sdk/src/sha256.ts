// A synchronous SHA-256 (FIPS 180-4). crypto.subtle is asynchronous and wants a secure context, but a signal has
// its id when the call that makes it returns, on plain http too.

let constants: number[] | undefined;

// The first 64 primes' cube roots, and behind them the first 8 primes' square roots: 32 bits of their fractions.
function table(): number[] {
  const roots: number[] = [];
  for (let n = 2; roots.length < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (prime) {
      const i = roots.length;
      roots[i] = (n ** (1 / 3) * 2 ** 32) | 0;
      if (i < 8) start[i] = (n ** 0.5 * 2 ** 32) | 0;
    }
  }
  return roots;
}

const start: number[] = [];

export function sha256(data: Uint8Array): Uint8Array {
  const k = (constants ??= table());
  const blocks = new DataView(new ArrayBuffer(((data.length + 72) >> 6) << 6));
  data.forEach((byte, i) => blocks.setUint8(i, byte));
  blocks.setUint8(data.length, 128);
  blocks.setUint32(blocks.byteLength - 4, data.length * 8);
  const h = start.slice();
  const w: number[] = [];
  const rotate = (x: number, n: number) => (x >>> n) | (x << (32 - n));
  for (let block = 0; block < blocks.byteLength; block += 64) {
    let s = h.slice();
    for (let i = 0; i < 64; i++) {
      if (i < 16) w[i] = blocks.getInt32(block + i * 4);
      else {
        const a = w[i - 15]!, b = w[i - 2]!;
        w[i] = (w[i - 16]! + w[i - 7]! + (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) +
          (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10))) | 0;
      }
      const [a, b, c, d, e, f, g, last] = s as [number, number, number, number, number, number, number, number];
      const first = last + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i]! + w[i]!;
      const second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      s = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
    }
    s.forEach((x, i) => (h[i] = (h[i]! + x) | 0));
  }
  const out = new DataView(new ArrayBuffer(32));
  h.forEach((x, i) => out.setInt32(i * 4, x));
  return new Uint8Array(out.buffer);
}
