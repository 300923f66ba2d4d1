import type { Replayed, ReplayProgress } from '../../index.js';
import type { Ending } from '../follow/happening.js';
import { bytes, count, counted } from '../view/units.js';

/** All of a replay so far. */
export interface ReplayTally {
  readonly frames: number;
  /** The bytes of their payloads. */
  readonly bytes: number;
  readonly gaps: number;
  /** The recorded times of the first and the last event, in epoch ms. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** Where another replay can go on, in bytes. */
  readonly offset: number;
  /** The length of the recording, in bytes. */
  readonly totalBytes: number;
  /** The last line of the recording, when it is torn and was reached. */
  readonly torn: ReplayProgress['torn'];
}

/** The tally of a replay that is about to begin. */
export const emptyReplayTally = (offset: number): ReplayTally => ({
  frames: 0,
  bytes: 0,
  gaps: 0,
  from: undefined,
  to: undefined,
  offset,
  totalBytes: 0,
  torn: undefined,
});

/** Adds an event to a tally. Pure. */
export const replayTallied = (tally: ReplayTally, event: Replayed): ReplayTally => {
  const isFrame = event.type === 'frame';
  const to = isFrame ? event.receivedAt : event.to;
  return {
    ...tally,
    frames: tally.frames + (isFrame ? 1 : 0),
    bytes: tally.bytes + (isFrame ? event.data.length : 0),
    gaps: tally.gaps + (isFrame ? 0 : 1),
    from: tally.from ?? to,
    to,
    offset: event.offset,
  };
};

/** Says how far a replay is: `42% · 1,842 frames · no gaps · 2026-01-01T00:00:00.000Z`. */
export const replayProgressWords = ({ frames, gaps, to, offset, totalBytes }: ReplayTally): string =>
  [
    `${totalBytes === 0 ? 0 : Math.min(100, Math.floor((offset * 100) / totalBytes))}%`,
    counted(frames, 'frame'),
    gaps === 0 ? 'no gaps' : counted(gaps, 'gap'),
    ...(to === undefined ? [] : [timeWords(to)]),
  ].join(' · ');

/**
 * Says at the end what was replayed, and where another replay can go on. A reader that has left may not have read all that stdout took.
 */
export const replaySummary = (tally: ReplayTally, { kind }: Pick<Ending, 'kind'>): string => {
  const { frames, bytes: total, gaps, from, to, offset } = tally;
  return [
    `${counted(frames, 'frame')}, ${bytes(total)}`,
    `gaps: ${gaps === 0 ? 'none' : count(gaps)}`,
    ...(from === undefined || to === undefined ? [] : [`recorded from ${timeWords(from)} to ${timeWords(to)}`]),
    kind === 'output-closed' ? 'the reader of stdout has left' : `go on with --offset ${offset}`,
  ].join('; ');
};

/** Says that the last line of a recording is torn; nothing when it is whole. */
export const tornWords = ({ torn }: Pick<ReplayTally, 'torn'>): string | undefined =>
  torn &&
  `The last line of the recording is torn: its ${counted(torn.bytes, 'byte')} at byte ${torn.at} were left out, and the frame or gap in it is lost.`;

// A recording that was made by hand may hold times that no calendar has.
const timeWords = (ms: number): string => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms));
