import type { Watermark } from '../../protocol/event.js';
import type { Received } from '../../protocol/event-line.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { Frame } from '../../protocol/frame.js';
import type { Snapshot } from '../../protocol/snapshot.js';
import { readFailure } from '../../protocol/failures/read-failure.js';

/** The messages of a follower: `join`, and `ping` for a silent leader. */
export type FromFollower =
  | {
      readonly type: 'join';
      /** The tab that joins. */
      readonly tab: string;
    }
  | { readonly type: 'ping' };

/** A tab posts a mark and receives it too, after all messages that were posted before. */
interface Mark {
  readonly type: 'mark';
  readonly tab: string;
}

/** The common field of the messages of a leader. */
interface OfLeader {
  /** Identifies the leader. Each leader has a higher number than the previous one. */
  readonly term: number;
}

/** A leader starts, or answers a ping. */
export interface Leads extends OfLeader {
  readonly type: 'leads';
}

/** The answer to a tab that joins: the state of the feed at an id. */
export interface Welcome extends OfLeader {
  readonly type: 'welcome';
  /** The tab that has joined. */
  readonly tab: string;
  /** The id of the last message of the relay; `undefined` before the first one. */
  readonly id: string | undefined;
  /** How far the clock of this machine is ahead of the relay's, in ms. */
  readonly shiftMs: number;
  readonly snapshot: Snapshot;
  readonly watermark: Watermark | undefined;
}

/** The events of one message of the relay, or of the connection of the leader. */
export interface Batch extends OfLeader {
  readonly type: 'batch';
  /** The id of the previous message. Equal to `to`: the events are not from the relay. */
  readonly from: string | undefined;
  /** The id of the message. */
  readonly to: string | undefined;
  readonly shiftMs: number;
  readonly events: readonly Received[];
}

/** The feed has ended, for all tabs. */
export interface Ended extends OfLeader {
  readonly type: 'ended';
  /** Why; `undefined` when the feed is complete. */
  readonly failure: TradeFeedError | undefined;
}

/** The messages of a leader. */
export type FromLeader = Leads | Welcome | Batch | Ended;

/** The messages between tabs. */
export type TabMessage = FromFollower | Mark | FromLeader;

/** Turns a message into plain data, because a structured clone loses the class of an object and most fields of an error. */
export const toPosted = (message: TabMessage): unknown => {
  switch (message.type) {
    case 'welcome':
      return { ...message, snapshot: message.snapshot.map(plain) };
    case 'batch':
      return { ...message, events: message.events.map(plain) };
    case 'ended':
      return plain(message);
    case 'join':
    case 'ping':
    case 'mark':
    case 'leads':
      return message;
  }
};

/** Restores a message from posted data. */
export const fromPosted = (posted: unknown): TabMessage => {
  const message = posted as TabMessage;
  switch (message.type) {
    case 'welcome':
      return { ...message, snapshot: message.snapshot.map(restored) };
    case 'batch':
      return { ...message, events: message.events.map(restored) };
    case 'ended':
      return restored(message);
    case 'join':
    case 'ping':
    case 'mark':
    case 'leads':
      return message;
  }
};

const plain = <T extends object>(value: T): T => {
  // A structured clone of a view copies its complete buffer.
  if (value instanceof Frame) return { ...value, data: copyOfPart(value.data as Uint8Array) };
  const { failure } = value as { readonly failure?: unknown };
  return failure instanceof TradeFeedError
    ? { ...value, failure: JSON.parse(JSON.stringify(failure)) as unknown }
    : value;
};

const copyOfPart = (data: Uint8Array): Uint8Array => (data.byteLength === data.buffer.byteLength ? data : data.slice());

const restored = <T extends object>(value: T): T => {
  const { type, failure } = value as { readonly type: unknown; readonly failure?: unknown };
  if (type === 'frame') {
    const { feed, data, isBinary, receivedAt, connection } = value as unknown as Frame<Uint8Array>;
    return new Frame(feed, data, isBinary, receivedAt, connection) as unknown as T;
  }
  return failure === undefined ? value : { ...value, failure: readFailure(failure) };
};
