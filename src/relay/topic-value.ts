import { identity } from 'rxjs';
import { writeFrame } from '../operators/node/write-frame.js';
import { Conflated } from '../operators/stream/conflated.js';
import { Decoded } from '../operators/stream/decoded.js';
import { isFrame, isLifecycle, timeOf } from '../operators/stream/item.js';
import type { WindowFacts } from '../operators/window/feed-window.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { LoggedValue } from '../protocol/snapshot.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import { publicFailure } from './public-event.js';

/**
 * Gives the time of a value in epoch ms: of its frame, or of the end of its window; `undefined` for one that has none.
 *
 * A payload may look like an event: its time is not one of the feed.
 */
export const valueTime = (value: unknown): number | undefined => {
  if (isLifecycle(value)) return undefined;
  const time = isWindow(value) ? value.end : timeOf(value);
  return Number.isFinite(time) ? time : undefined;
};

/** Makes what a log takes in for a value that is JSON already: one that came over another relay. */
export const relayedOn = ({ at, value }: RelayedValue<unknown>): LoggedValue => ({
  type: 'value',
  at,
  json: valueJson(value),
});

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

// A method, since `toJSON` has been called on the second argument: what is private in a failure would be in its result.
function publicIn(this: Readonly<Record<string, unknown>>, key: string, json: unknown): unknown {
  return shown(this[key], key, () => json);
}

/** Gives what JSON.stringify is to write: it does not call `toJSON` or the replacer on that again. */
const shown = (value: unknown, key: string, jsonOf: (value: unknown, key: string) => unknown): unknown => {
  if (value instanceof Decoded) return shown(value.value, key, ownJson);
  if (value instanceof Conflated)
    return { key: value.key as unknown, value: value.value as unknown, count: value.count };
  if (value instanceof TradeFeedError) return publicFailure(value).toJSON();
  if (isFrame(value)) return JSON.parse(writeFrame(value));
  const json = jsonOf(value, key);
  return json === value ? json : shown(json, key, identity);
};

const ownJson = (value: unknown, key: string): unknown => {
  const { toJSON } = Object(value) as { readonly toJSON?: unknown };
  return typeof toJSON === 'function' ? (toJSON.call(value, key) as unknown) : value;
};

const isWindow = (value: unknown): value is WindowFacts => {
  const { type, start, end, gaps } = Object(value) as Partial<Record<keyof WindowFacts, unknown>>;
  return type === 'window' && typeof start === 'number' && typeof end === 'number' && Array.isArray(gaps);
};
