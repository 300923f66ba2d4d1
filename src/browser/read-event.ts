import type { RelayedEvent } from '../protocol/event.js';
import { readFailure } from '../protocol/read-failure.js';
import type { RelayedValue } from '../protocol/relayed-value.js';
import { type FrameFields, relayedFrame } from './relayed-frame.js';

/** What comes over a relay. */
export type Received = RelayedEvent | RelayedValue<unknown>;

/** The fields of an event that are times of the relay's clock, or hold some. */
const timed: Readonly<Record<Received['type'], string>> = {
  frame: 'receivedAt',
  gap: 'from to failure',
  disconnected: 'at failure',
  stopped: 'at failure',
  opened: 'at',
  reconnecting: 'at',
  'ticket-requested': 'at',
  'ticket-issued': 'at',
  watermark: 'at',
  value: 'at',
};

/**
 * Reads the line of an event.
 *
 * @param shiftMs - by how much the clock of this machine is ahead of the relay's
 * @returns `undefined` for a type that this version does not know
 * @throws for a line that is not an event
 */
export const readEvent = (line: string, shiftMs: number): Received | undefined => {
  const fields = JSON.parse(line) as Fields & { readonly type: Received['type'] };
  if (!Object.hasOwn(timed, fields.type)) return undefined;
  const event = shifted(fields, timed[fields.type], shiftMs);
  if (event['type'] === 'frame') return relayedFrame(event as unknown as FrameFields);
  if (event['type'] === 'value' && !('value' in event)) throw new TypeError('value');
  return event as unknown as Received;
};

type Fields = Readonly<Record<string, unknown>>;

/**
 * Shifts times by the difference of the clocks.
 *
 * @param names - the fields that are times, or a `failure`, with blanks between them
 * @param shiftMs - by how much the clock of this machine is ahead of the relay's
 * @throws TypeError for one that is not a number
 */
export const shifted = (fields: Fields, names: string, shiftMs: number): Fields => {
  const result: Record<string, unknown> = { ...fields };
  for (const name of names.split(' ')) {
    const value = fields[name];
    if (name === 'failure') result[name] = readFailure(value, shiftMs);
    else if (typeof value === 'number') result[name] = value + shiftMs;
    else throw new TypeError(name);
  }
  return result;
};
