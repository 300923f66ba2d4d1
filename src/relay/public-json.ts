import { identity } from 'rxjs';
import { Conflated, Decoded, isFrame } from '../operators/items/item.js';
import { writeFrame } from '../operators/node/write-frame.js';
import type { LifecycleEvent, Stopped } from '../protocol/event.js';
import { failureOf, TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/**
 * Returns the event for clients: its failure carries only the library's fixed texts, and `stopped` becomes
 * `disconnected`, because the clients reconnect.
 */
export const publicEvent = (event: LifecycleEvent): Exclude<LifecycleEvent, Stopped> => {
  const own = event.type === 'stopped' ? ({ ...event, type: 'disconnected' } as const) : event;
  return 'failure' in own ? { ...own, failure: publicFailure(own.failure) } : own;
};

/**
 * Returns the failure for clients. Drops the text of any error that isn't a `TradeFeedError`, because it may be
 * private.
 */
export const publicFailure = (error: unknown): TradeFeedError => failureOf(error).toPublic();

/**
 * Writes a value as the JSON that clients receive.
 *
 * Replaces a `Decoded` by its value, a frame by the object of its line, and a failure by its public version, at any
 * depth.
 *
 * @throws TypeError for a value that has no JSON
 */
export const publicJson = (value: unknown): string => {
  const json = JSON.stringify(value, publicReplacer) as string | undefined;
  if (json === undefined) throw new TypeError("A topic's operator emitted a value that JSON can't represent.");
  return json;
};

// Not an arrow function: `this[key]` is the value before `toJSON`, which would write a failure's private fields.
function publicReplacer(this: Readonly<Record<string, unknown>>, key: string, json: unknown): unknown {
  return publicValue(this[key], key, () => json);
}

/** Returns the value for `JSON.stringify`, so that neither `toJSON` nor the replacer runs for it again. */
const publicValue = (value: unknown, key: string, jsonOf: (value: unknown, key: string) => unknown): unknown => {
  if (value instanceof Decoded) return publicValue(value.value, key, callToJson);
  if (value instanceof Conflated)
    return { key: value.key as unknown, value: value.value as unknown, count: value.count };
  if (value instanceof TradeFeedError) return publicFailure(value).toJSON();
  if (isFrame(value)) return JSON.parse(writeFrame(value));
  const json = jsonOf(value, key);
  return json === value ? json : publicValue(json, key, identity);
};

const callToJson = (value: unknown, key: string): unknown => {
  const { toJSON } = Object(value) as { readonly toJSON?: unknown };
  return typeof toJSON === 'function' ? (toJSON.call(value, key) as unknown) : value;
};
