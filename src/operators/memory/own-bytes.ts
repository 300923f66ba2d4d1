import { LazyFrame } from '../../protocol/lazy-frame.js';
import { frameOf } from '../items/item.js';

/** Returns the buffer view of a value: the data of its frame, or the byte array itself. A {@link LazyFrame} may have no `data` yet. */
export const viewOf = (value: unknown): Uint8Array | undefined => {
  const frame = frameOf(value);
  if (frame instanceof LazyFrame) return frame.stored;
  return frame?.data ?? (value instanceof Uint8Array ? value : undefined);
};

/** Returns whether a view uses less than 3/4 of its buffer. Such a view keeps more than 4/3 of its bytes alive. */
export const isSparse = ({ byteLength, buffer }: Uint8Array): boolean => byteLength * 4 < buffer.byteLength * 3;

/** Returns how many bytes a value keeps alive in addition to its own. */
export const slackOf = (value: unknown): number => {
  const frame = frameOf(value);
  if (frame instanceof LazyFrame) return frame.retainedBytes - frame.byteLength;
  const view = viewOf(value);
  return view === undefined ? 0 : view.buffer.byteLength - view.byteLength;
};

/**
 * Copies the bytes of a value into a buffer of exactly their size, if they are sparse in their buffer.
 *
 * For a frame, this replaces its `data`, so that each holder of the frame uses the copy and does not copy again. A frozen frame stays unchanged.
 * For a byte array, it returns a copy. Any other value is returned unchanged.
 */
export const withOwnBytes = <T>(value: T): T => {
  const view = viewOf(value);
  if (view === undefined || !isSparse(view)) return value;
  const own = copyOf(view);
  const frame = frameOf(value);
  if (frame === undefined) return own as T;
  Reflect.set(frame, 'data', own);
  return value;
};

// The copy of a Buffer is a Buffer. This file does not name that class, because a browser does not have it. The function creates the
// ArrayBuffer, because a new Buffer may be a part of Node's pool.
const copyOf = (view: Uint8Array): Uint8Array => {
  const { [Symbol.species]: Kind } = view.constructor as unknown as { [Symbol.species]: typeof Uint8Array };
  const copy = new Kind(new ArrayBuffer(view.byteLength), 0, view.byteLength);
  copy.set(view);
  return copy;
};
