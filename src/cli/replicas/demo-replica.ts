import type { Observable } from 'rxjs';
import type { ClusterState } from '../../cluster/operate.js';

/** An event of a replica, as `listen --json` writes it. Only these fields are used. */
export interface ReplicaEvent {
  readonly type: string;
  /** The number of frames that a gap reports. */
  readonly missed?: number;
  /** The failure of an event. */
  readonly failure?: { readonly code?: string };
}

/** A replica of the demo. */
export interface DemoReplica {
  /** Emits the events of the replica. Completes when it has ended. */
  readonly events$: Observable<ReplicaEvent>;
  /** Ends the replica at once, as `kill -9` does. */
  kill(): void;
  /** Asks the replica to end. It gives the ownership away first. */
  stop(): void;
}

/** The cluster of the demo. */
export interface DemoCluster {
  /** What the replicas run in, and which engine connects them. */
  readonly description: string;
  start(name: string): DemoReplica;
  state(): Promise<ClusterState>;
  handOver(): Promise<boolean>;
  readonly close: () => Promise<void>;
}

/** The name of the account in the demo. */
export const demoAccount = 'demo';
