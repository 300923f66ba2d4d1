import type { Either } from 'fp-ts/lib/Either.js';
import { type ClusterLifecycleEvent, isClusterEvent, isRelayedValue } from '../../protocol/event.js';
import type { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame, ownBytes, withOwnPayload } from '../../protocol/frame.js';
import { isBytes, isTime } from '../../protocol/type-guards.js';
import type { DecodeFailure } from '../decode/decode-failure.js';

/** The items of a stream: its frames, or what operators created from them, but no lifecycle events. */
export type ItemOf<E> = Exclude<E, ClusterLifecycleEvent>;

/** The type of a stream's frames: over a relay, a frame has a plain byte array. */
export type FrameIn<E> = [Extract<E, AnyFrame>] extends [Frame] ? Frame : AnyFrame;

/**
 * `E`, but TypeScript doesn't infer `E` from it: what a consumer expects must not decide the type of the source.
 * `NoInfer` doesn't work here, because `Exclude` doesn't distribute over it.
 */
export type NotInferred<E> = [E][E extends unknown ? 0 : never];

/** Wraps the error of a source, because the error itself can be any value, even `undefined`. */
export interface SourceError {
  readonly error: unknown;
}

export const isLifecycle = <E>(value: E): value is E & ClusterLifecycleEvent => {
  // An item may have the type `opened` as well, so check that the time is finite: `Infinity` would stop all windows.
  if (typeof value !== 'object' || value === null) return false;
  const event = value as Partial<Record<TimedField, unknown>>;
  // Read only the fields of its type: this runs for each item in each operator.
  switch (event.type as ClusterLifecycleEvent['type']) {
    case 'ticket-requested':
    case 'ticket-issued':
    case 'reconnecting':
    case 'watermark':
    case 'owner-changed':
    case 'engine-refused':
    case 'engine-recovered':
      return isTime(event.at);
    case 'opened':
      return isTime(event.at) && isTime(event.completeFrom ?? event.at);
    case 'disconnected':
    case 'stopped':
      return isTime(event.at) && isFailure(event.failure);
    case 'gap':
      return isTime(event.from) && isTime(event.to) && isFailure(event.failure);
    default:
      return false;
  }
};

/** Returns whether an event is of a cluster's engine. The stream may be behind its time: what was missed follows. */
export const isOfEngine = (event: ClusterLifecycleEvent): boolean =>
  isClusterEvent(event) && event.type !== 'owner-changed';

export const isWatermark = (value: unknown): boolean => isLifecycle(value) && value.type === 'watermark';

type TimedField = 'type' | 'at' | 'completeFrom' | 'from' | 'to' | 'failure';

const isFailure = (value: unknown): boolean => isTime((value as TradeFeedError | undefined)?.endedAt);

/** Returns when an event happened or an item arrived, in epoch ms; `undefined` if an item has no time. */
export const timeOf = (value: unknown): number | undefined => {
  const frame = frameOf(value);
  if (frame !== undefined) return isTime(frame.receivedAt) ? frame.receivedAt : undefined;
  if (isLifecycle(value)) return value.type === 'gap' ? value.to : value.at;
  if (isRelayedValue(value) || isOutcome(value)) return value.at;
  const failedAt = isEither(value) && value._tag === 'Left' ? value.left?.receivedAt : undefined;
  return isTime(failedAt) ? failedAt : undefined;
};

// `settle` emits these.
const isOutcome = (value: unknown): value is { readonly at: number } => {
  const { type, at } = Object(value) as Partial<Record<'type' | 'at', unknown>>;
  return type === 'outcome' && isTime(at);
};

export const bytesOf = (value: unknown): number => {
  const frame = frameOf(value);
  if (frame !== undefined) return frame.byteLength;
  if (typeof value === 'string') return value.length * 2;
  return isBytes(value) ? value.byteLength : 0;
};

export const isFrame = <E>(value: E): value is E & Frame => value instanceof Frame;

/** Returns the frame of a value: the value itself, or the frame it was created from. */
export const frameOf = (value: unknown): Frame | undefined => {
  if (isFrame(value)) return value;
  if (value instanceof Decoded) return value.frame as Frame;
  if (value instanceof Conflated) return frameOf(value.value);
  return isEither(value) && value._tag === 'Right' ? frameOf(value.right) : undefined;
};

/** Returns whether a value is a record of a log. If so, its time is the clock until the log emits a watermark. */
export const isLogged = (value: unknown): boolean => {
  const event = frameOf(value) ?? (isLifecycle(value) ? value : undefined);
  return event !== undefined && 'offset' in event;
};

// What `decodeEither` emits, with the fields that are read here.
const isEither = (value: unknown): value is Either<Partial<DecodeFailure> | undefined, unknown> =>
  typeof value === 'object' && value !== null && '_tag' in value;

/**
 * Returns what to store of a value that outlives its `next`, because a view would keep its whole buffer alive: the same
 * value if its bytes could move or use at least 3/4 of their buffer, otherwise a copy.
 */
export const withOwnBytes = <T>(value: T): T => (isBytes(value) ? ownBytes(value) : withOwnFrame(value)) as T;

const withOwnFrame = (value: unknown): unknown => {
  if (isFrame(value)) return withOwnPayload(value);
  if (value instanceof Decoded) return withField(value, 'frame', withOwnFrame(value.frame));
  if (value instanceof Conflated) return withField(value, 'value', withOwnFrame(value.value));
  return isEither(value) && value._tag === 'Right' ? withField(value, 'right', withOwnFrame(value.right)) : value;
};

// An object of another class isn't copied, because it may have private fields.
const withField = <T extends object>(value: T, name: keyof T, field: unknown): T =>
  field === value[name] || !([Decoded, Conflated].includes(value.constructor as never) || isPlain(value))
    ? value
    : Object.assign(Object.create(Object.getPrototypeOf(value) as object) as T, value, { [name]: field });

/** Returns whether a value's class is `Object`, of any realm. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) === null;
};

/**
 * A frame and its decoded payload.
 *
 * @example
 * ```ts
 * import { Decoded, Frame } from 'rx-trade-feed';
 *
 * const frame = new Frame('market', Buffer.from('{"n":1}'), false, Date.now(), 1);
 * console.log(new Decoded({ n: 1 }, frame).value.n); // 1
 * ```
 */
export class Decoded<A, F extends AnyFrame = Frame> {
  readonly type = 'decoded' as const;
  /** What the codec returned. */
  readonly value: A;
  /** The frame it came from, with the bytes of the payload. */
  readonly frame: F;

  constructor(value: A, frame: F) {
    this.value = value;
    this.frame = frame;
  }
}

/**
 * The newest value of a key in one period of `conflate`.
 *
 * @example
 * ```ts
 * import { Conflated } from 'rx-trade-feed';
 *
 * const newest = new Conflated('EURUSD', { price: 1.1 }, 3);
 * // 1.1, the newest of 3
 * console.log(`${newest.value.price}, the newest of ${newest.count}`);
 * ```
 */
export class Conflated<T, K> {
  readonly type = 'conflated' as const;
  readonly key: K;
  /** The newest value of the key. */
  readonly value: T;
  /** How many values the key had in the period, including the newest. */
  readonly count: number;

  constructor(key: K, value: T, count: number) {
    this.key = key;
    this.value = value;
    this.count = count;
  }
}
