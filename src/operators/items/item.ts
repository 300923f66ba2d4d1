import type { Either } from 'fp-ts/lib/Either.js';
import type { ClusterLifecycleEvent } from '../../protocol/event.js';
import type { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame } from '../../protocol/frame.js';
import { isRelayedValue } from '../../protocol/relayed-value.js';
import { Conflated } from './conflated.js';
import type { DecodeFailure } from '../decode/decode-failure.js';
import { Decoded } from './decoded.js';
import { ReplayedFrame } from './replayed.js';

/** The items of a stream: its frames, or the values that operators created from them. Lifecycle events are not items. */
export type ItemOf<E> = Exclude<E, ClusterLifecycleEvent>;

/** The type of a stream's frames: a frame of a relay has a plain byte array. */
export type FrameIn<E> = [Extract<E, AnyFrame>] extends [Frame] ? Frame : AnyFrame;

/**
 * `E`, but TypeScript does not infer `E` from it: the type that a consumer expects must not decide the type of the source. `NoInfer` does not
 * work here, because `Exclude` does not distribute over it.
 */
export type NotInferred<E> = [E][E extends unknown ? 0 : never];

/** The error of a source. The object shows that there is one: a source can error with any value, also with `undefined`. */
export interface SourceError {
  readonly error: unknown;
}

/** Returns whether a value is a lifecycle event. */
export const isLifecycle = <E>(value: E): value is E & ClusterLifecycleEvent => {
  // A mapped item may have the type `opened`, too. An event also has a time.
  const { type, at, to, failure } = Object(value) as Partial<Record<'type' | 'at' | 'to' | 'failure', unknown>>;
  switch (type as ClusterLifecycleEvent['type']) {
    case 'ticket-requested':
    case 'ticket-issued':
    case 'opened':
    case 'reconnecting':
    case 'watermark':
    case 'owner-changed':
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

/** Returns whether a value is a watermark. */
export const isWatermark = (value: unknown): boolean => isLifecycle(value) && value.type === 'watermark';

const isFailure = (value: unknown): boolean => typeof (value as TradeFeedError | undefined)?.endedAt === 'number';

/** Returns when an event or an item happened, in epoch ms; `undefined` for an item without a time. */
export const timeOf = (value: unknown): number | undefined => {
  const frame = frameOf(value);
  if (frame !== undefined) return frame.receivedAt;
  if (isLifecycle(value)) return value.type === 'gap' ? value.to : value.at;
  if (isRelayedValue(value)) return value.at;
  return isEither(value) && value._tag === 'Left' ? value.left?.receivedAt : undefined;
};

/** Returns the size of a value in bytes: of its frame, of a byte array, of a text in UTF-16; 0 for any other value. */
export const bytesOf = (value: unknown): number => {
  const frame = frameOf(value);
  if (frame !== undefined) return frame.byteLength;
  if (typeof value === 'string') return value.length * 2;
  return value instanceof Uint8Array ? value.byteLength : 0;
};

/** Returns whether a value is a frame. */
export const isFrame = <E>(value: E): value is E & Frame => value instanceof Frame;

/** Returns the frame of a value: the value itself, or the frame that it was created from. */
export const frameOf = (value: unknown): Frame | undefined => {
  if (isFrame(value)) return value;
  if (value instanceof Decoded) return value.frame as Frame;
  if (value instanceof Conflated) return frameOf(value.value);
  return isEither(value) && value._tag === 'Right' ? frameOf(value.right) : undefined;
};

/** Returns whether a value is from a recording. */
export const isReplayed = (value: unknown): boolean =>
  frameOf(value) instanceof ReplayedFrame || (isLifecycle(value) && 'offset' in value);

// An output of `decodeEither`, with the fields that are read here.
const isEither = (value: unknown): value is Either<Partial<DecodeFailure> | undefined, unknown> =>
  typeof value === 'object' && value !== null && '_tag' in value;
