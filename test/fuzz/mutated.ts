import fc, { type Arbitrary } from 'fast-check';

/** A change of bytes at a position, which is a fraction of the length. */
export interface Change {
  readonly at: number;
  readonly how: 'set' | 'insert' | 'delete' | 'repeat';
  readonly byte: number;
}

const share = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const change: Arbitrary<Change> = fc.record({
  at: share,
  how: fc.constantFrom('set', 'insert', 'delete', 'repeat'),
  byte: fc.oneof(fc.nat(255), fc.constantFrom(0, 9, 10, 13, 32, 34, 58, 92, 123, 125, 127, 255)),
});

/** Generates no change, one, or a few. */
export const changes = (most: number): Arbitrary<readonly Change[]> => fc.array(change, { maxLength: most });

/** Applies changes in order. */
export const changed = (bytes: Buffer, all: readonly Change[]): Buffer =>
  all.reduce<Buffer>((now, { at, how, byte }) => {
    const place = Math.floor(at * now.length);
    const [before, after] = [now.subarray(0, place), now.subarray(place)];
    const rest = how === 'set' || how === 'delete' ? after.subarray(1) : after;
    const added = how === 'repeat' ? after.subarray(0, byte) : how === 'delete' ? Buffer.alloc(0) : Buffer.of(byte);
    return Buffer.concat([before, added, rest]);
  }, bytes);

/** Splits bytes at some positions, like a network. */
export const cutAt = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...places.map((share) => Math.floor(share * bytes.length)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)).filter(({ length }) => length > 0);
};

/** The positions of the splits, as fractions of the length. */
export const places: Arbitrary<readonly number[]> = fc.array(share, { maxLength: 5 });
