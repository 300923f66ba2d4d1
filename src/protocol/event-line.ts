import type { Gap, LifecycleEvent, RelayedEvent, RelayedValue } from './event.js';
import type { Feed } from './feed.js';
import { Frame } from './frame.js';
import type { LoggedValue } from './feed-state.js';
import { checkFields, readFailure } from './failures/trade-feed-error.js';
import { isNumber, isText, isTime } from './type-guards.js';

/** What a line of JSON contains. Valid UTF-8 is written as text and any other payload as base64, so no byte is lost. */
export type Received = RelayedEvent | RelayedValue<unknown>;

interface PayloadReader<Data extends Uint8Array> {
  readonly utf8: (text: string) => Data;
  readonly base64: (text: string) => Data;
}

export const writeEventLine = (event: LifecycleEvent | LoggedValue): string =>
  event.type === 'value'
    ? `{"type":"value","at":${event.at},"value":${event.json}}`
    : JSON.stringify('offset' in event ? withoutPlace(event) : event);

/** Removes a record's place in its log, which means nothing elsewhere. */
const withoutPlace = (record: object): object => {
  const { offset: _offset, position: _position, ...event } = record as LineFields;
  return event;
};

export type LineFields = Readonly<Record<string, unknown>>;

/**
 * Returns `undefined` for a type that this version doesn't know. Adds `shiftMs`, by which the clock here is ahead, to
 * all times.
 */
export const readEventLine = (line: string, shiftMs: number): Received | undefined => {
  const fields = JSON.parse(line) as LineFields & { readonly type: Received['type'] };
  const { type, at, failure } = fields;
  if (type === 'frame') return readFrame(fields, bytesReader, shiftMs);
  if (type === 'gap') return readGap(fields, shiftMs);
  if (!timedTypes.includes(type)) return undefined;
  const { completeFrom } = fields;
  checkFields(isTime(at) && (type !== 'value' || 'value' in fields) && isTime(completeFrom ?? at), type);
  const later = isTime(completeFrom) && { completeFrom: completeFrom + shiftMs };
  const event = { ...fields, at: at + shiftMs, ...later } as unknown as Received;
  return type === 'disconnected' || type === 'stopped'
    ? ({ ...event, failure: readFailure(failure, shiftMs) } as Received)
    : event;
};

const timedTypes: readonly Received['type'][] = [
  'opened',
  'disconnected',
  'stopped',
  'reconnecting',
  'ticket-requested',
  'ticket-issued',
  'watermark',
  'value',
];

export const readFrame = <Data extends Uint8Array>(
  { feed, connection, receivedAt, isBinary, encoding, data }: LineFields,
  payload: PayloadReader<Data>,
  shiftMs = 0,
): Frame<Data> => {
  const isValid =
    isText(feed) &&
    isNumber(connection) &&
    isTime(receivedAt) &&
    typeof isBinary === 'boolean' &&
    (encoding === 'utf8' || encoding === 'base64') &&
    isText(data);
  checkFields(isValid, 'frame');
  return new Frame(feed as Feed, payload[encoding](data), isBinary, receivedAt + shiftMs, connection);
};

export const readGap = (fields: LineFields, shiftMs = 0): Gap => {
  const { from, to, durationMs, failure } = fields;
  checkFields(isTime(from) && isTime(to) && isTime(durationMs), 'gap');
  const gap = fields as unknown as Gap;
  return { ...gap, from: from + shiftMs, to: to + shiftMs, failure: readFailure(failure, shiftMs) };
};

let encoder: InstanceType<typeof TextEncoder> | undefined;

const bytesReader: PayloadReader<Uint8Array> = {
  // Created here and not at import, because jsdom has none.
  utf8: (text) => (encoder ??= new TextEncoder()).encode(text),
  base64: (text) => {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    // `Uint8Array.from` is twenty times slower.
    for (let n = 0; n < raw.length; n += 1) bytes[n] = raw.charCodeAt(n);
    return bytes;
  },
};
