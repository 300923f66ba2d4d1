import { frameOf } from './item.js';

/** The most bytes that share a buffer of their own: one that goes on being used in part keeps no more than this alive. */
const mostBytes = 64 * 1024;

/** Values that hold views of one buffer. */
export interface Cluster<T> {
  readonly values: readonly T[];
  /** Their bytes. */
  readonly bytes: number;
  /** Those of the buffer: as long as one of the views is there, all of it is. */
  readonly bufferBytes: number;
}

/** Gives the view of a buffer that a value holds: that of its frame, or a byte array itself. */
export const viewOf = (value: unknown): Uint8Array | undefined =>
  frameOf(value)?.data ?? (value instanceof Uint8Array ? value : undefined);

/** Says whether views are so small a part of their buffer that they keep more than one and a third times their bytes alive. */
export const isSparse = (bytes: number, bufferBytes: number): boolean => bytes * 4 < bufferBytes * 3;

/** Puts the values together that follow one another and whose views are of the same buffer. */
export const clustersOf = <T>(values: readonly T[], view: (value: T) => Uint8Array): readonly Cluster<T>[] => {
  const clusters: Cluster<T>[] = [];
  for (let from = 0, to = 0; from < values.length; from = to) {
    const { buffer } = view(values[from] as T);
    let bytes = 0;
    for (; to < values.length; to += 1) {
      const next = view(values[to] as T);
      if (next.buffer !== buffer) break;
      bytes += next.byteLength;
    }
    clusters.push({ values: partOf(values, from, to), bytes, bufferBytes: buffer.byteLength });
  }
  return clusters;
};

/**
 * Gives views a buffer of their own, or a few of them if they are large.
 *
 * @param put - puts the same bytes, at another place, where a view was
 */
export const packed = <T>(
  values: readonly T[],
  view: (value: T) => Uint8Array,
  put: (value: T, view: Uint8Array) => void,
): readonly Cluster<T>[] => {
  const clusters: Cluster<T>[] = [];
  for (let from = 0, to = 0; from < values.length; from = to) {
    let bytes = 0;
    for (; to < values.length; to += 1) {
      const { byteLength } = view(values[to] as T);
      if (to > from && bytes + byteLength > mostBytes) break;
      bytes += byteLength;
    }
    const cluster = { values: partOf(values, from, to), bytes, bufferBytes: bytes };
    move(cluster, view, put);
    clusters.push(cluster);
  }
  return clusters;
};

/** Gives a value with the same bytes at another place. What is no byte array is the value itself; a frame that somebody froze stays where it is. */
export const movedTo = <T>(value: T, view: Uint8Array): T => {
  const frame = frameOf(value);
  if (frame === undefined) return view as T;
  Reflect.set(frame, 'data', view);
  return value;
};

const move = <T>(
  { values, bytes }: Cluster<T>,
  view: (value: T) => Uint8Array,
  put: (value: T, view: Uint8Array) => void,
): void => {
  const own = new Uint8Array(bytes);
  let end = 0;
  for (const value of values) {
    const data = view(value);
    own.set(data, end);
    put(value, ofItsKind(data, own.buffer, end));
    end += data.byteLength;
  }
};

const partOf = <T>(values: readonly T[], from: number, to: number): readonly T[] =>
  to - from === values.length ? values : values.slice(from, to);

// A Buffer stays one, and what is none need not know that there are Buffers: a browser has none.
const ofItsKind = (data: Uint8Array, buffer: ArrayBuffer, offset: number): Uint8Array => {
  const { [Symbol.species]: Kind } = data.constructor as unknown as { [Symbol.species]: typeof Uint8Array };
  return new Kind(buffer, offset, data.byteLength);
};
