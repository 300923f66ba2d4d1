import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { readEventLine, type Received } from '../protocol/event-line.js';
import { checkFields } from '../protocol/failures/trade-feed-error.js';
import { eventsNotBefore } from '../protocol/feed-state.js';
import { isTime } from '../protocol/type-guards.js';

/** The longest message, in characters. One that never ends would otherwise fill the memory. */
const maxLength = 2 ** 26;

/**
 * Creates a reader for one stream of Server-Sent Events (HTML, 9.2.6). Call it with bytes, and it returns the events
 * they complete.
 *
 * @throws from the reader, for a message that is too long
 */
export const createServerSentEventReader = (): ((bytes: Uint8Array) => readonly EventSourceMessage[]) => {
  const decoder = new TextDecoder();
  let events: EventSourceMessage[] = [];
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onError: (error) => {
      // Unknown fields are ignored.
      if (error.type === 'max-buffer-size-exceeded') throw error;
    },
    maxBufferSize: maxLength,
  });
  return (bytes) => {
    events = [];
    parser.feed(decoder.decode(bytes, { stream: true }));
    return events;
  };
};

/** Returns the relay's clock, in epoch ms. Throws for an invalid message. */
export const readHello = (data: string): number => {
  const { at } = JSON.parse(data) as { readonly at: unknown };
  checkFields(isTime(at), 'hello');
  return at;
};

/**
 * Reads the events of a message. If one line is unreadable there are none, and the relay sends the message again.
 *
 * @param ownAt - time of the last event that a page emitted before its first connection: the state of the relay's feed
 *   may be older. Frames keep the time of the service, and those of the past are older than that
 * @throws for an invalid line
 */
export const eventsOf = (lines: readonly string[], shiftMs: number, ownAt = -Infinity): readonly Received[] => {
  const events = lines.flatMap((line) => readEventLine(line, shiftMs) ?? []);
  const beginsAt = events.reduce((at, event) => Math.min(at, timeOfData(event)), ownAt);
  return events.flatMap((event): readonly Received[] => {
    const { type } = event;
    return type === 'frame' || type === 'value' || type === 'watermark' ? [event] : eventsNotBefore([event], beginsAt);
  });
};

/** Returns the time of a frame or value, in epoch ms; `Infinity` for other events. */
export const timeOfData = (event: Received): number =>
  event.type === 'frame' ? event.receivedAt : event.type === 'value' ? event.at : Infinity;
