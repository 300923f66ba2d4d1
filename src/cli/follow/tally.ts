import type { FailureCode, Feed, Frame, Reconnecting, TradeFeedError } from '../../index.js';
import type { CliEvent, ShownLifecycle } from './event.js';

/** The totals and the status of a feed at a time. Times are epoch ms. */
export interface Tally {
  readonly feed: Feed;
  readonly startedAt: number;
  readonly now: number;
  readonly phase: Phase;
  /** The number of connections that have opened. */
  readonly connections: number;
  readonly frames: number;
  readonly bytes: number;
  readonly lastFrame: Frame | undefined;
  readonly gaps: number;
  /** The total duration of all gaps that have ended, in ms. */
  readonly lostMs: number;
  /** When the connection was lost; `undefined` while a connection is open, and before the first one. */
  readonly lostAt: number | undefined;
  /** The number of reconnects, by the failure before them. */
  readonly reconnects: Readonly<Partial<Record<FailureCode, number>>>;
  /** The last events, without frames. */
  readonly log: readonly ShownLifecycle[];
  /** The totals at the last tick, or at the start. */
  readonly lastTick: Sample;
  /** The frames, bytes and duration of each of the last ticks. */
  readonly samples: readonly Sample[];
}

/** The phase of the current attempt. */
export type Phase =
  | { readonly name: 'ticket' | 'handshake' | 'open' }
  | { readonly name: 'waiting'; readonly reconnecting: Reconnecting; readonly failure: TradeFeedError };

/** Frames and bytes at a time or during a time, in ms. */
export interface Sample {
  readonly ms: number;
  readonly frames: number;
  readonly bytes: number;
}

/** Frames and bytes per second. */
export type Rate = Pick<Sample, 'frames' | 'bytes'>;

/** The number of stored events: as many as one reconnect has. */
const logLength = 6;
const sampleCount = 40;
/** The number of ticks for the current rate. */
const rateTicks = 6;

/** Returns the tally before the first event. */
export const emptyTally = (feed: Feed, now: number): Tally => ({
  feed,
  startedAt: now,
  now,
  phase: { name: 'ticket' },
  connections: 0,
  frames: 0,
  bytes: 0,
  lastFrame: undefined,
  gaps: 0,
  lostMs: 0,
  lostAt: undefined,
  reconnects: {},
  log: [],
  lastTick: { ms: now, frames: 0, bytes: 0 },
  samples: [],
});

/** Returns a tally with another event. */
export const tallied = (tally: Tally, event: CliEvent): Tally => {
  if (event.type === 'frame') {
    const { data, receivedAt } = event;
    const { frames, bytes } = tally;
    return { ...tally, now: receivedAt, frames: frames + 1, bytes: bytes + data.length, lastFrame: event };
  }
  if (event.type === 'ended') return { ...tally, now: event.at };
  if (event.type === 'tick') {
    const tick = { ms: event.at, frames: tally.frames, bytes: tally.bytes };
    const samples = [...tally.samples, difference(tick, tally.lastTick)].slice(-sampleCount);
    return { ...tally, now: event.at, lastTick: tick, samples };
  }
  return { ...tally, ...changes(tally, event), log: [...tally.log, event].slice(-logLength) };
};

const changes = (tally: Tally, event: ShownLifecycle): Partial<Tally> => {
  switch (event.type) {
    case 'ticket-requested':
      return { now: event.at, phase: { name: 'ticket' } };
    case 'ticket-issued':
      return { now: event.at, phase: { name: 'handshake' } };
    case 'opened':
      return { now: event.at, phase: { name: 'open' }, connections: event.connection, lostAt: undefined };
    case 'owner-changed':
      return { now: event.at };
    case 'gap':
      return { now: event.to, gaps: tally.gaps + 1, lostMs: tally.lostMs + event.durationMs };
    case 'disconnected': {
      const { code, stage, endedAt } = event.failure;
      const reconnects = { ...tally.reconnects, [code]: (tally.reconnects[code] ?? 0) + 1 };
      return { now: event.at, reconnects, lostAt: stage === 'stream' ? endedAt : tally.lostAt };
    }
    case 'reconnecting': {
      const disconnected = tally.log.at(-1);
      const failure = disconnected?.type === 'disconnected' ? disconnected.failure : undefined;
      return { now: event.at, ...(failure && { phase: { name: 'waiting', reconnecting: event, failure } }) };
    }
  }
};

/** Returns the rate of the last ticks. */
export const currentRate = ({ samples }: Tally): Rate => perSecond(samples.slice(-rateTicks).reduce(sum, nothing));

/** Returns the average rate since the start. */
export const averageRate = ({ now, startedAt, frames, bytes }: Tally): Rate =>
  perSecond({ ms: now - startedAt, frames, bytes });

/** Returns the frames or bytes of each of the last ticks. */
export const perTick = ({ samples }: Tally, what: keyof Rate): readonly number[] =>
  samples.map((sample) => sample[what]);

/** Returns the number of reconnects. */
export const reconnectCount = ({ reconnects }: Tally): number =>
  Object.values(reconnects).reduce((sum, number) => sum + number, 0);

const nothing: Sample = { ms: 0, frames: 0, bytes: 0 };

const sum = (a: Sample, b: Sample): Sample => ({
  ms: a.ms + b.ms,
  frames: a.frames + b.frames,
  bytes: a.bytes + b.bytes,
});

const difference = (a: Sample, b: Sample): Sample => ({
  ms: a.ms - b.ms,
  frames: a.frames - b.frames,
  bytes: a.bytes - b.bytes,
});

const perSecond = ({ ms, frames, bytes }: Sample): Rate =>
  ms <= 0 ? nothing : { frames: (frames * 1_000) / ms, bytes: (bytes * 1_000) / ms };
