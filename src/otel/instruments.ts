import type { Attributes, Meter } from '@opentelemetry/api';
import type { ConnectionStatus } from '../operators/connection-status.js';

/** The figures of one feed. All subscriptions of an operator add to them, so no counter ever decreases. */
export class FeedFigures {
  readonly attributes: Attributes;
  frames = 0;
  bytes = 0;
  missed = 0;
  dropped = 0;
  handovers = 0;
  /** When the newest frame was received, or until there is one, when the connection opened. In epoch ms. */
  newestAt: number | undefined;
  /** The frame count of the last collection, and when it was first collected, in ms on a monotonic clock. */
  collected = { frames: 0, atMs: performance.now() };
  /** The codes of past outages. `undefined` is the series without a code. */
  readonly outageCodes = new Set<string | undefined>([undefined]);
  /** The subscriptions. One that ended with the feed's failure stays, as `stopped`, until the next one starts. */
  readonly subscriptions = new Set<SubscriptionState>();

  /** @param feed - its name; `undefined` until the source names it */
  constructor(feed: string | undefined, attributes: Attributes) {
    const name = feed !== undefined && { 'messaging.destination.name': feed };
    const fixed = { 'messaging.system': 'trade_feed', 'messaging.operation.name': 'receive' };
    this.attributes = { ...fixed, ...name, ...attributes };
  }
}

/** The current state of one subscription. */
export interface SubscriptionState {
  readonly state: ConnectionStatus['state'] | undefined;
  /** The code of the failure; `undefined` while a connection is open. */
  readonly code: string | undefined;
  /** How long there has been no connection, in ms; `undefined` while one is open. */
  readonly downMs: number | undefined;
}

/** What the metrics read of a cluster: which replica owns the connection, and what this one missed. */
export interface ClusterOwner {
  /** The feed's name, so that the instruments exist before the first event. */
  readonly feed?: string | undefined;
  readonly status: {
    /** The id of this replica. */
    readonly replica: string;
    /** The id of the owner; `undefined` if there's none, or if it isn't known. */
    readonly owner: string | undefined;
    /** What the engine currently refuses; `undefined` if nothing. */
    readonly refused?: object | undefined;
    /** How many records it has read from the store because it had missed them. */
    readonly fetched?: number | undefined;
    /** How many records it has emitted that the next owner doesn't know. */
    readonly surplus?: number | undefined;
  };
}

/** What the metrics read of a relay: whether it can admit clients, and read its log. */
export interface RelayGate {
  /** Returns the current status. */
  status(): {
    /** How many replays failed. */
    readonly failedReplays?: number | undefined;
    /** Why it can't; `undefined` if it can. */
    readonly refused?: { readonly code: string } | undefined;
  };
}

/** What the metrics read in addition to the feed. */
interface Parts {
  readonly cluster?: ClusterOwner | undefined;
  readonly relay?: RelayGate | undefined;
}

/** The values of an instrument, with extra attributes. The SDK repeats the last value of a series that's left out. */
type Read = (figures: FeedFigures, parts: Parts) => readonly (readonly [value: number, more?: Attributes])[];

const kind = (type: 'Counter' | 'Gauge' | 'UpDownCounter') => (unit: string, description: string, read: Read) => ({
  create: (meter: Meter, name: string) => meter[`createObservable${type}`](name, { unit, description }),
  read,
});
const [counter, gauge, current] = [kind('Counter'), kind('Gauge'), kind('UpDownCounter')];

/** What the meter reads when it collects, so that frames never call the SDK. */
const observed = Object.entries({
  'messaging.client.consumed.messages': counter('{message}', 'Frames that the feed delivered.', (f) => [[f.frames]]),
  'trade_feed.io': counter('By', 'Bytes of the frames that the feed delivered.', (f) => [[f.bytes]]),
  'trade_feed.frame.age': gauge(
    's',
    'Time since the newest frame was received, or since the connection opened.',
    (figures) => {
      const { frames, newestAt } = figures;
      if (newestAt === undefined) return [];
      const nowMs = performance.now();
      // If the clock was set back, counts the silence from the earlier collection that had the same number of frames.
      if (figures.collected.frames !== frames) figures.collected = { frames, atMs: nowMs };
      return [[Math.max(Date.now() - newestAt, nowMs - figures.collected.atMs) / 1_000]];
    },
  ),
  'trade_feed.outage.age': gauge(
    's',
    'Time without an open connection, by the code of the failure; 0 while one is open.',
    ({ subscriptions, outageCodes }) => {
      const [longest] = [...subscriptions].sort((one, other) => (other.downMs ?? -1) - (one.downMs ?? -1));
      const seconds = (longest?.downMs ?? 0) / 1_000;
      // Reports 0 for the codes of earlier outages.
      const ofCode = (code: string | undefined) => (code === longest?.code ? seconds : 0);
      return [...outageCodes.add(longest?.code)].map((code) => [ofCode(code), code ? { 'error.type': code } : {}]);
    },
  ),
  'trade_feed.connection.state': current(
    '{feed}',
    'Feeds in each state: connecting, live, reconnecting, stopped.',
    ({ subscriptions }) => {
      const states = [...subscriptions].map(({ state }) => state);
      const count = (state: string) => states.filter((each) => each === state).length;
      const all = ['connecting', 'live', 'reconnecting', 'stopped'];
      return all.map((state) => [count(state), { 'trade_feed.state': state }]);
    },
  ),
  'trade_feed.frames.missed': counter(
    '{frame}',
    'Frames that a relay, a worker or a cluster reported as missing.',
    (figures) => [[figures.missed]],
  ),
  'trade_feed.frames.dropped': counter('{frame}', 'Values that bounded operators dropped.', (f) => [[f.dropped]]),
  'trade_feed.relay.refused': current(
    '{relay}',
    '1 while `authorize` or `select` of the relay fails, by the code that its clients report, otherwise 0.',
    (_, { relay }) => {
      const refused = relay?.status().refused?.code;
      const codes = relay === undefined ? [] : ['relay-failed', 'relay-authorize-timeout'];
      return codes.map((code) => [Number(code === refused), { 'error.type': code }]);
    },
  ),
  'trade_feed.relay.replays.failed': counter(
    '{replay}',
    'Gaps of clients because the log of the relay could not be read.',
    (_, { relay }) => (relay ? [[relay.status().failedReplays ?? 0]] : []),
  ),
  'trade_feed.cluster.owner': current(
    '{replica}',
    '1 if this replica owns the connection of the cluster, otherwise 0.',
    (_, { cluster }) => (cluster ? [[Number(cluster.status.owner === cluster.status.replica)]] : []),
  ),
  'trade_feed.cluster.refused': current(
    '{replica}',
    "1 while the cluster's engine refuses what this replica needs, or can't be reached, otherwise 0.",
    (_, { cluster }) => (cluster ? [[Number(cluster.status.refused !== undefined)]] : []),
  ),
  'trade_feed.cluster.fetched': counter(
    '{record}',
    'Frames and events that this replica had missed, and has read from the store of the cluster.',
    (_, { cluster }) => (cluster ? [[cluster.status.fetched ?? 0]] : []),
  ),
  'trade_feed.cluster.surplus': counter(
    '{record}',
    "Frames and events of an owner that this replica has emitted, but that the next owner doesn't know.",
    (_, { cluster }) => (cluster ? [[cluster.status.surplus ?? 0]] : []),
  ),
  'trade_feed.cluster.handovers': counter(
    '{handover}',
    'Changes of the replica that owns the connection.',
    ({ handovers }, { cluster }) => (cluster !== undefined || handovers > 0 ? [[handovers]] : []),
  ),
});

/** The instruments that events call, rather than the meter. */
export type Instruments = ReturnType<typeof createInstruments>;

/** @param figures - returns the figures of all feeds */
export const createInstruments = (meter: Meter, figures: () => Iterable<FeedFigures>, parts: Parts) => {
  const created = observed.map(([name, { create, read }]) => ({ instrument: create(meter, name), read }));
  meter.addBatchObservableCallback(
    (result) => {
      for (const each of figures())
        for (const { instrument, read } of created)
          for (const [value, more] of read(each, parts))
            result.observe(instrument, value, { ...each.attributes, ...more });
    },
    created.map(({ instrument }) => instrument),
  );
  // OpenTelemetry's default buckets are meant for ms.
  const seconds = (name: string, longest: number, description: string) => {
    const explicitBucketBoundaries = boundaries.filter((boundary) => boundary <= longest);
    return meter.createHistogram(name, { unit: 's', description, advice: { explicitBucketBoundaries } });
  };
  const reconnects = { unit: '{reconnect}', description: 'Reconnects, by the code of the failure before each.' };
  const attempt = 'Duration of an attempt until the connection was open, or until it failed without one.';
  return {
    reconnects: meter.createCounter('trade_feed.reconnects', reconnects),
    gapDuration: seconds('trade_feed.gap.duration', 300, 'Duration of gaps: times from which frames may be missing.'),
    attemptDuration: seconds('trade_feed.attempt.duration', 30, attempt),
  };
};

const boundaries = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
