import type { Attributes, BatchObservableResult } from '@opentelemetry/api';
import type { ConnectionStatus } from '../operators/connection-status.js';
import type { Instruments } from './instruments.js';

/** The figures of one feed. All subscriptions of an operator add to them, so a counter never goes back. */
export interface FeedFigures {
  readonly attributes: Attributes;
  frames: number;
  bytes: number;
  /** When the newest frame was received, in epoch ms. */
  newestAt: number | undefined;
  missed: number;
  dropped: number;
  handovers: number;
  /** The states of the subscriptions. A subscription that the failure of the feed ended stays as `stopped`, until the next one begins. */
  readonly states: Map<object, ConnectionState | undefined>;
}

/** The state of a connection. */
export type ConnectionState = ConnectionStatus['state'];

/** The part of a cluster that shows which replica owns the connection. The cluster of this package has it. */
export interface ClusterOwner {
  readonly status: {
    /** The id of this replica. */
    readonly replica: string;
    /** The id of the owner; `undefined` if there is none, or if it is not known. */
    readonly owner: string | undefined;
  };
}

/** Creates the figures of a feed. */
export const createFigures = (attributes: Attributes): FeedFigures => ({
  attributes,
  ...{ frames: 0, bytes: 0, newestAt: undefined, missed: 0, dropped: 0, handovers: 0 },
  states: new Map(),
});

/** Reports the figures of a feed to the meter. */
export const observeFigures = (
  result: BatchObservableResult,
  instruments: Instruments,
  figures: FeedFigures,
  cluster: ClusterOwner | undefined,
): void => {
  const { attributes, newestAt } = figures;
  result.observe(instruments.messages, figures.frames, attributes);
  result.observe(instruments.io, figures.bytes, attributes);
  result.observe(instruments.missed, figures.missed, attributes);
  result.observe(instruments.dropped, figures.dropped, attributes);
  // A clock that was set back must not make the age negative.
  if (newestAt !== undefined)
    result.observe(instruments.frameAge, Math.max(0, Date.now() - newestAt) / 1_000, attributes);
  const current = [...figures.states.values()];
  for (const state of connectionStates)
    result.observe(instruments.state, current.filter((each) => each === state).length, {
      ...attributes,
      'trade_feed.state': state,
    });
  if (cluster !== undefined || figures.handovers > 0)
    result.observe(instruments.handovers, figures.handovers, attributes);
  if (cluster === undefined) return;
  const { replica, owner } = cluster.status;
  result.observe(instruments.owner, owner === replica ? 1 : 0, attributes);
};

const connectionStates: readonly ConnectionState[] = ['connecting', 'live', 'reconnecting', 'stopped'];
