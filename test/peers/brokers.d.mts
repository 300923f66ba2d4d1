import type { ClusterEngine } from 'rx-trade-feed/cluster';

export type BrokerKind = 'nats' | 'redis';
type AnyKind = BrokerKind | 'nats-core' | 'sentinel';

/** A broker that runs. */
export interface RunningBroker<Kind extends AnyKind = AnyKind> {
  readonly kind: Kind;
  readonly port: number;
  readonly pid: number | undefined;
  /** Starts it again, on the same port. */
  readonly start: () => Promise<void>;
  readonly kill: () => Promise<void>;
  /** Deletes its data. */
  readonly wipe: () => void;
}

export const startBroker: <Kind extends AnyKind>(
  kind: Kind,
  folder: string,
  moreArgs?: readonly string[],
) => Promise<RunningBroker<Kind>>;
export const startNatsCluster: (
  folder: string,
  stream: string,
) => Promise<{
  readonly ports: readonly number[];
  readonly kill: () => Promise<void>;
  readonly stop: () => Promise<void>;
}>;
export const connectEngine: (
  kind: BrokerKind,
  port: number,
) => Promise<{ readonly engine: ClusterEngine; readonly close: () => unknown }>;
