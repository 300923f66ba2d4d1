import type { RelayedEvent } from '../protocol/event.js';
import { readFailure } from '../protocol/read-failure.js';
import { type FrameFields, relayedFrame } from './relayed-frame.js';

/** Which fields of an event are times of the relay's clock. */
const times: Readonly<Record<RelayedEvent['type'], readonly string[]>> = {
  frame: ['receivedAt'],
  gap: ['from', 'to'],
  disconnected: ['at'],
  opened: ['at'],
  reconnecting: ['at'],
  'ticket-requested': ['at'],
  'ticket-issued': ['at'],
};

/**
 * Reads the line of an event.
 *
 * @param shiftMs - by how much the clock of this machine is ahead of the relay's
 * @returns `undefined` for a type that this version does not know
 * @throws for what is no event
 */
export const readEvent = (line: string, shiftMs: number): RelayedEvent | undefined => {
  const fields = JSON.parse(line) as Fields & { readonly type: RelayedEvent['type'] };
  if (!Object.hasOwn(times, fields.type)) return undefined;
  const event = shifted(fields, times[fields.type], shiftMs);
  if (event['type'] === 'frame') return relayedFrame(event as unknown as FrameFields);
  if (!/^(gap|disconnected)$/.test(fields.type)) return event as unknown as RelayedEvent;
  return { ...event, failure: readFailure(event['failure'], shiftMs) } as unknown as RelayedEvent;
};

type Fields = Readonly<Record<string, unknown>>;

/**
 * Puts times right.
 *
 * @param names - the fields that are times
 * @param shiftMs - by how much the clock of this machine is ahead of the relay's
 * @throws TypeError for one that is no number
 */
export const shifted = (fields: Fields, names: readonly string[], shiftMs: number): Fields => {
  const result: Record<string, unknown> = { ...fields };
  for (const name of names) {
    if (typeof fields[name] !== 'number') throw new TypeError(name);
    result[name] = fields[name] + shiftMs;
  }
  return result;
};
