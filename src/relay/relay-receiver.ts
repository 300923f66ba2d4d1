import type { Observable } from 'rxjs';
import type { RelayTopic } from './topic.js';

/** One client of a relay. */
export interface RelayReceiver {
  /** The `Last-Event-ID` of the request: the client receives every event since then, or a gap. */
  readonly lastEventId?: string | undefined;
  /** The response that the messages are written to: while it is full, messages wait. Without it, each message is emitted at once. */
  readonly response?: RelayResponse | undefined;
  /** An operator whose output the client receives instead of every frame: see {@link RelayTopic}. @defaultValue the complete feed */
  readonly select?: RelayTopic | undefined;
  /** The id of the user, for `maxClientsPerUser` and {@link Relay.disconnect}. */
  readonly user?: string | undefined;
}

/** The part of a response that a relay uses. The `ServerResponse` of Node has it. */
export interface RelayResponse {
  /** Whether the buffer is full. The relay then waits for `drain`. */
  readonly writableNeedDrain: boolean;
  /** Adds a listener that is called when the buffer has room again. */
  on(event: 'drain', listener: () => void): unknown;
  /** Removes the listener. */
  off(event: 'drain', listener: () => void): unknown;
  /** Called when the client has read nothing for four heartbeats. */
  destroy(): unknown;
}

/** The key of the authorization of a {@link PendingReceiver}. Not published. */
export const authorization = Symbol('authorization');

/** The key of the selection of a {@link PendingReceiver}. Not published. */
export const selection = Symbol('selection');

/** A client that must be authorized first. */
export interface PendingReceiver extends RelayReceiver {
  /** Emits the id of the user, or `undefined`, when the client is authorized; replaces `user`. Completes without a value if the client has left. */
  readonly [authorization]?: Observable<string | undefined>;
  /** Returns the topic of an authorized client; replaces `select`. */
  readonly [selection]?: () => RelayTopic | undefined;
}
