import type { Joined } from './joining.js';
import type { RelayRefusal } from './relay-full-error.js';

/** What happens to the clients of a relay, for a log. Told apart by `type`. */
export type RelayEvent =
  | {
      readonly type: 'client-joined';
      /** When, in epoch ms. */
      readonly at: number;
      /** Which client of this relay: 1, 2, … */
      readonly client: number;
      /** `new`: for the first time; `resumed`: back, and gets what it missed; `behind`: back too late for that, and is told of a gap. */
      readonly joined: Joined;
    }
  | {
      /** It does not read as fast as frames come: some are let go by, and it is told of gaps. Told once until it has caught up. */
      readonly type: 'client-behind';
      readonly at: number;
      readonly client: number;
      /** How many frames it has missed since it joined. */
      readonly missed: number;
    }
  | {
      /** It read nothing for four heartbeats: its connection is ended. */
      readonly type: 'client-stuck';
      readonly at: number;
      readonly client: number;
    }
  | {
      readonly type: 'client-left';
      readonly at: number;
      readonly client: number;
      /** How many frames it was sent. */
      readonly sent: number;
      /** How many frames it was not sent, and told of. */
      readonly missed: number;
    }
  | {
      /** The source has ended with an error: clients are told to connect again, and the text of an error that is none of a feed only here. */
      readonly type: 'source-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** The operator of a topic has failed, or has emitted a value that is no JSON. Clients are not told what the error says. */
      readonly type: 'topic-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** There was no place for it. */
      readonly type: 'client-refused';
      readonly at: number;
      readonly reason: RelayRefusal;
    };
