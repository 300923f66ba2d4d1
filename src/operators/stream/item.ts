import type { LifecycleEvent } from '../../protocol/event.js';
import { Frame } from '../../protocol/frame.js';
import { Conflated } from './conflated.js';
import { Decoded } from './decoded.js';

/** What is in a stream besides the events around the frames: the frames, or whatever was made of them. */
export type ItemOf<E> = Exclude<E, LifecycleEvent>;

/** Tells what happens around the frames from the frames, and from what was made of them. */
export const isLifecycle = <E>(value: E): value is E & LifecycleEvent => {
  switch ((value as { readonly type?: unknown } | null | undefined)?.type as LifecycleEvent['type']) {
    case 'ticket-requested':
    case 'ticket-issued':
    case 'opened':
    case 'disconnected':
    case 'reconnecting':
    case 'gap':
      return true;
    default:
      return false;
  }
};

/** When an event or an item happened, in epoch ms; `undefined` for an item that does not know. */
export const timeOf = (value: unknown): number | undefined => {
  const frame = frameOf(value);
  if (frame !== undefined) return frame.receivedAt;
  if (!isLifecycle(value)) return undefined;
  return value.type === 'gap' ? value.to : value.at;
};

/** How many bytes a value holds: those of its frame, of a byte array, of a text as UTF-16; 0 for anything else. */
export const bytesOf = (value: unknown): number => {
  const frame = frameOf(value);
  if (frame !== undefined) return frame.data.byteLength;
  if (typeof value === 'string') return value.length * 2;
  return value instanceof Uint8Array ? value.byteLength : 0;
};

/** Tells frames from everything else. */
export const isFrame = <E>(value: E): value is E & Frame => value instanceof Frame;

/** Gives the frame that a value is, or was made of. */
export const frameOf = (value: unknown): Frame | undefined => {
  if (isFrame(value)) return value;
  if (value instanceof Decoded) return value.frame;
  return value instanceof Conflated ? frameOf(value.value) : undefined;
};
