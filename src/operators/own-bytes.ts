import { isSparse, LazyFrame } from '../protocol/lazy-frame.js';
import { frameOf } from './items/item.js';

/**
 * Gives a value its bytes in memory that no other value uses, and returns it. Call it for each value that is stored after its `next`: a view
 * of a buffer would keep all of that buffer alive.
 *
 * For a frame, also of a value that was created from it, this replaces `data`, so that the next holder of the frame copies nothing. A byte array is
 * returned as a copy, because its buffer cannot be replaced. Bytes that use at least 3/4 of their buffer are not copied, and a frozen frame stays unchanged.
 */
export const withOwnBytes = <T>(value: T): T => {
  const frame = frameOf(value);
  if (frame instanceof LazyFrame) frame.own();
  else if (frame !== undefined) Reflect.set(frame, 'data', ownBytes(frame.data));
  else if (value instanceof Uint8Array) return ownBytes(value) as Uint8Array & T;
  return value;
};

// The copy of a Buffer is a Buffer. This file does not name that class, because a browser does not have it. The function creates the
// ArrayBuffer, because a new Buffer may be a part of Node's pool.
const ownBytes = (view: Uint8Array): Uint8Array => {
  if (!isSparse(view.byteLength, view.buffer)) return view;
  const { [Symbol.species]: Kind } = view.constructor as unknown as { [Symbol.species]: typeof Uint8Array };
  const copy = new Kind(new ArrayBuffer(view.byteLength), 0, view.byteLength);
  copy.set(view);
  return copy;
};
