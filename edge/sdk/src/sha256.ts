// A synchronous SHA-256 (FIPS 180-4). crypto.subtle is asynchronous and wants a secure context, but a signal has
// its id when the call that makes it returns, on plain http too.

const rotate = (x: number, n: number) => (x >>> n) | (x << (32 - n));

/** Returns the digest in the first 8 words. */
export function sha256(bytes: number[]): number[] {
  // The first 32 bits of the fractions of the square and the cube roots of the first 64 primes.
  const squares: number[] = [];
  const cubes: number[] = [];
  for (let n = 2; !cubes[63]; n++) {
    let d = 2;
    while (n % d) d++;
    if (d < n) continue;
    squares.push((n ** (1 / 2) * 2 ** 32) | 0);
    cubes.push((n ** (1 / 3) * 2 ** 32) | 0);
  }
  const words: number[] = []; // with a bit 1 behind the bytes, zeros, and their length in the last word of a block
  [...bytes, 128].forEach((byte, i) => (words[i >> 2]! |= byte << (24 - (i % 4) * 8)));
  words[(((bytes.length + 8) >> 6) << 4) + 15] = bytes.length * 8;
  let hash = squares; // whose first 8 words count
  for (let at = 0; at < words.length; at += 16) {
    const w: number[] = [];
    let s = hash;
    for (let i = 0; i < 64; i++) {
      const x = w[i - 15]!, y = w[i - 2]!;
      w[i] = i < 16 ? words[at + i]! | 0
        : (rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3)) + (rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10)) + w[i - 16]! + w[i - 7]! | 0;
      const [a, b, c, d, e, f, g, h] = s as [number, number, number, number, number, number, number, number];
      const first = rotate(rotate(rotate(e, 14) ^ e, 5) ^ e, 6) + ((e & f) ^ (~e & g)) + h + cubes[i]! + w[i]!;
      s = [rotate(rotate(rotate(a, 9) ^ a, 11) ^ a, 2) + ((a & b) | (c & (a | b))) + first | 0, a, b, c, d + first | 0, e, f, g];
    }
    hash = hash.map((x, i) => (x + s[i]!) | 0);
  }
  return hash;
}
