import type { FailureCode, Feed, Frame, Reconnecting, TradeFeedError } from '../../index.js';
import type { Happening, ShownLifecycle } from './happening.js';

/** Everything that a view shows of a feed, up to a moment. Times are epoch ms. */
export interface Tally {
  readonly feed: Feed;
  readonly startedAt: number;
  readonly now: number;
  readonly phase: Phase;
  /** Connections that have opened so far. */
  readonly connections: number;
  readonly frames: number;
  readonly bytes: number;
  readonly lastFrame: Frame | undefined;
  readonly gaps: number;
  /** The length of all gaps that are over. */
  readonly lostMs: number;
  /** Since when there is no connection, after one was lost. */
  readonly lostAt: number | undefined;
  /** How often an attempt ended and another one followed, by what ended it. */
  readonly reconnects: Readonly<Partial<Record<FailureCode, number>>>;
  /** The last events that are no frames. */
  readonly log: readonly ShownLifecycle[];
  /** The counts at the last tick, or the start. */
  readonly lastTick: Sample;
  /** What came in each of the last ticks, and how long they were. */
  readonly samples: readonly Sample[];
}

/** Where the attempt is. */
export type Phase =
  | { readonly name: 'ticket' | 'handshake' | 'open' }
  | { readonly name: 'waiting'; readonly reconnecting: Reconnecting; readonly failure: TradeFeedError };

/** How much there was at a time, or in a time, in ms. */
export interface Sample {
  readonly ms: number;
  readonly frames: number;
  readonly bytes: number;
}

/** How much comes a second. */
export type Rate = Pick<Sample, 'frames' | 'bytes'>;

/** As many as one reconnect has. */
const logLength = 6;
const sampleCount = 40;
/** Over how many ticks the rate of the moment is taken. */
const rateTicks = 6;

/** The tally of a feed that is about to be subscribed to. */
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

/** Adds what happened to a tally. Pure. */
export const tallied = (tally: Tally, happening: Happening): Tally => {
  if (happening.type === 'frame') {
    const { data, receivedAt } = happening;
    const { frames, bytes } = tally;
    return { ...tally, now: receivedAt, frames: frames + 1, bytes: bytes + data.length, lastFrame: happening };
  }
  if (happening.type === 'ended') return { ...tally, now: happening.at };
  if (happening.type === 'tick') {
    const tick = { ms: happening.at, frames: tally.frames, bytes: tally.bytes };
    const samples = [...tally.samples, difference(tick, tally.lastTick)].slice(-sampleCount);
    return { ...tally, now: happening.at, lastTick: tick, samples };
  }
  return { ...tally, ...changes(tally, happening), log: [...tally.log, happening].slice(-logLength) };
};

const changes = (tally: Tally, event: ShownLifecycle): Partial<Tally> => {
  switch (event.type) {
    case 'ticket-requested':
      return { now: event.at, phase: { name: 'ticket' } };
    case 'ticket-issued':
      return { now: event.at, phase: { name: 'handshake' } };
    case 'opened':
      return { now: event.at, phase: { name: 'open' }, connections: event.connection, lostAt: undefined };
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

/** How much came a second, lately. */
export const currentRate = ({ samples }: Tally): Rate => perSecond(samples.slice(-rateTicks).reduce(sum, nothing));

/** How much came a second, from the start. */
export const averageRate = ({ now, startedAt, frames, bytes }: Tally): Rate =>
  perSecond({ ms: now - startedAt, frames, bytes });

/** How much came in each of the last ticks. */
export const perTick = ({ samples }: Tally, what: keyof Rate): readonly number[] =>
  samples.map((sample) => sample[what]);

/** How often a connection or an attempt had to be replaced. */
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
