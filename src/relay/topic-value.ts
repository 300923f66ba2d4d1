import { frameLine } from '../operators/node/recording-line.js';
import { Conflated } from '../operators/stream/conflated.js';
import { Decoded } from '../operators/stream/decoded.js';
import { isFrame, timeOf } from '../operators/stream/item.js';
import type { WindowFacts } from '../operators/window/feed-window.js';
import { TradeFeedError } from '../protocol/failure.js';
import { publicFailure } from './public-event.js';

/** Gives the time of a value in epoch ms: of its frame, or of the end of its window; `undefined` for one that has none. */
export const valueTime = (value: unknown): number | undefined => (isWindow(value) ? value.end : timeOf(value));

/**
 * Writes a value as JSON. A `Decoded` is its value, a frame is the object of its line, and failures are made public, at any depth.
 *
 * @throws TypeError for a value that JSON does not have
 */
export const valueJson = (value: unknown): string => {
  const json = JSON.stringify(value, publicIn) as string | undefined;
  if (json === undefined) throw new TypeError('The operator of a topic has emitted a value that is no JSON.');
  return json;
};

// A method, since `toJSON` has been called on the second argument.
function publicIn(this: Readonly<Record<string, unknown>>, key: string, json: unknown): unknown {
  const value = this[key];
  if (value instanceof Decoded) return value.value;
  if (value instanceof Conflated)
    return { key: value.key as unknown, value: value.value as unknown, count: value.count };
  if (value instanceof TradeFeedError) return publicFailure(value);
  return isFrame(value) ? JSON.parse(frameLine(value)) : json;
}

const isWindow = (value: unknown): value is WindowFacts => {
  const { type, start, end, gaps } = Object(value) as Partial<Record<keyof WindowFacts, unknown>>;
  return type === 'window' && typeof start === 'number' && typeof end === 'number' && Array.isArray(gaps);
};
