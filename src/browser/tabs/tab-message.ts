import type { Watermark } from '../../protocol/event.js';
import type { Received } from '../../protocol/event-line.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { Frame } from '../../protocol/frame.js';
import type { Snapshot } from '../../protocol/snapshot.js';
import { readFailure } from '../../protocol/failures/read-failure.js';

/** What a follower posts: to join, and to ask a silent leader for a sign of life. */
export type FromFollower =
  | {
      readonly type: 'join';
      /** The tab that asks. */
      readonly tab: string;
    }
  | { readonly type: 'ping' };

/** Comes back to the tab that posts it, after all that was posted before. */
interface Mark {
  readonly type: 'mark';
  readonly tab: string;
}

/** What every message of a leader has. */
interface OfLeader {
  /** Which leader: each one has a higher number than the one before. */
  readonly term: number;
}

/** A leader begins, or shows that it is alive. */
export interface Leads extends OfLeader {
  readonly type: 'leads';
}

/** The answer to a tab that joins: the state of the feed at a place. */
export interface Welcome extends OfLeader {
  readonly type: 'welcome';
  /** The tab that it is for. */
  readonly tab: string;
  /** The id of the last message of the relay; `undefined` before the first one. */
  readonly id: string | undefined;
  /** By how much the clock of this machine is ahead of the relay's, in ms. */
  readonly shiftMs: number;
  readonly present: Snapshot;
  readonly watermark: Watermark | undefined;
}

/** The events of one message of the relay, or what the leader says of its connection. */
export interface Batch extends OfLeader {
  readonly type: 'batch';
  /** The id of the message before; equal to `to` in what is no message of the relay. */
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

/** What a leader posts. */
export type FromLeader = Leads | Welcome | Batch | Ended;

/** What one tab posts to the others. */
export type TabMessage = FromFollower | Mark | FromLeader;

/** Turns a message into data that survives a structured clone: a copied object loses its class, a copied error most of its fields. */
export const toPosted = (message: TabMessage): unknown => {
  switch (message.type) {
    case 'welcome':
      return { ...message, present: message.present.map(plain) };
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

/** Reads a message that another tab has posted. */
export const fromPosted = (posted: unknown): TabMessage => {
  const message = posted as TabMessage;
  switch (message.type) {
    case 'welcome':
      return { ...message, present: message.present.map(restored) };
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
  // A clone of a view is a clone of its whole buffer.
  if (value instanceof Frame) return { ...value, data: ownBytes(value.data as Uint8Array) };
  const { failure } = value as { readonly failure?: unknown };
  return failure instanceof TradeFeedError
    ? { ...value, failure: JSON.parse(JSON.stringify(failure)) as unknown }
    : value;
};

const ownBytes = (data: Uint8Array): Uint8Array => (data.byteLength === data.buffer.byteLength ? data : data.slice());

const restored = <T extends object>(value: T): T => {
  const { type, failure } = value as { readonly type: unknown; readonly failure?: unknown };
  if (type === 'frame') {
    const { feed, data, isBinary, receivedAt, connection } = value as unknown as Frame<Uint8Array>;
    return new Frame(feed, data, isBinary, receivedAt, connection) as unknown as T;
  }
  return failure === undefined ? value : { ...value, failure: readFailure(failure) };
};
