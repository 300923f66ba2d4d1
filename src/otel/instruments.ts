import type { Attributes, Meter, MetricAdvice } from '@opentelemetry/api';

/** The instruments of a feed. */
export type Instruments = ReturnType<typeof createInstruments>;

/**
 * Creates the instruments. A meter returns the same data for instruments with the same name.
 *
 * The counters of frames are observable: the meter reads a tally when it collects, so a frame costs no call of the SDK.
 */
export const createInstruments = (meter: Meter) => ({
  messages: meter.createObservableCounter('messaging.client.consumed.messages', {
    unit: '{message}',
    description: 'Frames that the feed delivered.',
  }),
  io: meter.createObservableCounter('trade_feed.io', {
    unit: 'By',
    description: 'Bytes of the frames that the feed delivered.',
  }),
  frameAge: meter.createObservableGauge('trade_feed.frame.age', {
    unit: 's',
    description: 'Time since the newest frame was received.',
  }),
  state: meter.createObservableUpDownCounter('trade_feed.connection.state', {
    unit: '{feed}',
    description: 'Feeds in each state: connecting, live, reconnecting, stopped.',
  }),
  reconnects: meter.createCounter('trade_feed.reconnects', {
    unit: '{reconnect}',
    description: 'Reconnects, by the code of the failure before each.',
  }),
  gapDuration: meter.createHistogram('trade_feed.gap.duration', {
    unit: 's',
    description: 'Duration of gaps: times from which frames may be missing.',
    advice: secondsUpTo(300),
  }),
  attemptDuration: meter.createHistogram('trade_feed.attempt.duration', {
    unit: 's',
    description: 'Duration of an attempt until the connection was open, or until it failed without one.',
    advice: secondsUpTo(30),
  }),
  missed: meter.createObservableCounter('trade_feed.frames.missed', {
    unit: '{frame}',
    description: 'Frames that a relay, a worker or a cluster reported as missing.',
  }),
  dropped: meter.createObservableCounter('trade_feed.frames.dropped', {
    unit: '{frame}',
    description: 'Values that bounded operators dropped.',
  }),
  owner: meter.createObservableUpDownCounter('trade_feed.cluster.owner', {
    unit: '{replica}',
    description: '1 if this replica owns the connection of the cluster, otherwise 0.',
  }),
  handovers: meter.createObservableCounter('trade_feed.cluster.handovers', {
    unit: '{handover}',
    description: 'Changes of the replica that owns the connection.',
  }),
});

/** The attributes of all instruments. */
export const baseAttributes = (feed: string, attributes: Attributes): Attributes => ({
  'messaging.system': 'trade_feed',
  'messaging.operation.name': 'receive',
  'messaging.destination.name': feed,
  ...attributes,
});

const boundaries = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

// The default buckets of OpenTelemetry are for ms.
const secondsUpTo = (longest: number): MetricAdvice => ({
  explicitBucketBoundaries: boundaries.filter((seconds) => seconds <= longest),
});
