import type { Either } from 'fp-ts/lib/Either.js';
import type { LifecycleEvent } from '../../protocol/event.js';
import type { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame } from '../../protocol/frame.js';
import { isRelayedValue } from '../../protocol/relayed-value.js';
import { Conflated } from './conflated.js';
import type { DecodeFailure } from '../decode/decode-failure.js';
import { Decoded } from './decoded.js';
import { ReplayedFrame } from './replayed.js';

/** What is in a stream besides the events around the frames: the frames, or whatever was made of them. */
export type ItemOf<E> = Exclude<E, LifecycleEvent>;

/** What kind of frames a stream has: those of a relay hold plain byte arrays. */
export type FrameIn<E> = [Extract<E, AnyFrame>] extends [Frame] ? Frame : AnyFrame;

/** Tells what happens around the frames from the frames, and from what was made of them. */
export const isLifecycle = <E>(value: E): value is E & LifecycleEvent => {
  // A payload may say `opened` as well: it has to have the time, too.
  const { type, at, to, failure } = Object(value) as Partial<Record<'type' | 'at' | 'to' | 'failure', unknown>>;
  switch (type as LifecycleEvent['type']) {
    case 'ticket-requested':
    case 'ticket-issued':
    case 'opened':
    case 'reconnecting':
    case 'watermark':
      return typeof at === 'number';
    case 'disconnected':
    case 'stopped':
      return typeof at === 'number' && isFailure(failure);
    case 'gap':
      return typeof to === 'number' && isFailure(failure);
    default:
      return false;
  }
};

/** Distinguishes a watermark from frames and from the events of the connection. */
export const isWatermark = (value: unknown): boolean => isLifecycle(value) && value.type === 'watermark';

const isFailure = (value: unknown): boolean => typeof (value as TradeFeedError | undefined)?.endedAt === 'number';

/** When an event or an item happened, in epoch ms; `undefined` for an item that does not know. */
export const timeOf = (value: unknown): number | undefined => {
  const frame = frameOf(value);
  if (frame !== undefined) return frame.receivedAt;
  if (isLifecycle(value)) return value.type === 'gap' ? value.to : value.at;
  if (isRelayedValue(value)) return value.at;
  return isEither(value) && value._tag === 'Left' ? value.left?.receivedAt : undefined;
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
  if (value instanceof Decoded) return value.frame as Frame;
  if (value instanceof Conflated) return frameOf(value.value);
  return isEither(value) && value._tag === 'Right' ? frameOf(value.right) : undefined;
};

/** Tells what comes out of a recording. */
export const isReplayed = (value: unknown): boolean =>
  frameOf(value) instanceof ReplayedFrame || (isLifecycle(value) && 'offset' in value);

// What `decodeEither` gives, as far as it is looked into here.
const isEither = (value: unknown): value is Either<Partial<DecodeFailure> | undefined, unknown> =>
  typeof value === 'object' && value !== null && '_tag' in value;
