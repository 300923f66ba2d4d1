import type { Election, Input } from '../../../src/cluster/election/election.js';
import type { FeedMessage } from '../../../src/cluster/messages/feed-message.js';
import type { Conditions } from './network.js';

/** A replica of the simulation: the real election and follower, with a simulated feed. */
export interface SimulatedReplica {
  readonly id: string;
  readonly state: () => Election;
  readonly conditions: Conditions;
  readonly isAlive: () => boolean;
  readonly hasConnection: () => boolean;
  /** The run of the owner whose frames it emits: an `end` of another owner, which its follower drops, does not change it. */
  readonly followed: () => string | undefined;
  readonly input: (input: Input) => void;
  readonly receive: (message: FeedMessage) => void;
  /** Notes that a fault concerns this replica from now on. */
  readonly disturb: (forMs?: number) => void;
  readonly pause: () => void;
  /** Continues. A suspended machine has a monotonic clock that stood still. */
  readonly resume: (wasSuspended: boolean) => void;
  readonly kill: () => void;
  readonly jumpClock: (ms: number) => void;
  /** Runs an action in this replica: at once, or when it continues. */
  readonly run: (action: () => void) => void;
}
