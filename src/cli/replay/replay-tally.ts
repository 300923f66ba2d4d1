import type { Replayed, ReplayProgress } from '../../index.js';
import type { Ending } from '../follow/event.js';
import { bytes, count, counted } from '../view/units.js';

/** The totals of a replay so far. */
export interface ReplayTally {
  readonly frames: number;
  /** The bytes of all payloads. */
  readonly bytes: number;
  readonly gaps: number;
  /** The recorded times of the first and the last event, in epoch ms. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** Where another replay can continue, in bytes. */
  readonly offset: number;
  /** The length of the recording, in bytes. */
  readonly totalBytes: number;
  /** The last line of the recording, if it is torn and the replay has reached it. */
  readonly torn: ReplayProgress['torn'];
}

/** Returns the tally at the beginning of a replay. */
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

/** Returns a tally with another event. */
export const replayTallied = (tally: ReplayTally, event: Replayed): ReplayTally => {
  const isFrame = event.type === 'frame';
  const to = isFrame ? event.receivedAt : event.to;
  return {
    ...tally,
    frames: tally.frames + (isFrame ? 1 : 0),
    bytes: tally.bytes + (isFrame ? event.byteLength : 0),
    gaps: tally.gaps + (isFrame ? 0 : 1),
    from: tally.from ?? to,
    to,
    offset: event.offset,
  };
};

/** Describes the progress of a replay: `42% · 1,842 frames · no gaps · 2026-01-01T00:00:00.000Z`. */
export const replayProgressWords = ({ frames, gaps, to, offset, totalBytes }: ReplayTally): string =>
  [
    `${totalBytes === 0 ? 0 : Math.min(100, Math.floor((offset * 100) / totalBytes))}%`,
    counted(frames, 'frame'),
    gaps === 0 ? 'no gaps' : counted(gaps, 'gap'),
    ...(to === undefined ? [] : [timeWords(to)]),
  ].join(' · ');

/**
 * Returns the summary of a replay, with the offset from which another replay can continue. If the reader of stdout has exited, the offset is
 * unknown, because the reader may not have read all data that stdout accepted.
 */
export const replaySummary = (tally: ReplayTally, { kind }: Pick<Ending, 'kind'>): string => {
  const { frames, bytes: total, gaps, from, to, offset } = tally;
  return [
    `${counted(frames, 'frame')}, ${bytes(total)}`,
    `gaps: ${gaps === 0 ? 'none' : count(gaps)}`,
    ...(from === undefined || to === undefined ? [] : [`recorded from ${timeWords(from)} to ${timeWords(to)}`]),
    kind === 'output-closed' ? 'the reader of stdout has exited' : `continue with --offset ${offset}`,
  ].join('; ');
};

/** Reports a torn last line of the recording; returns `undefined` if the line is complete. */
export const tornWords = ({ torn }: Pick<ReplayTally, 'torn'>): string | undefined =>
  torn &&
  `The last line of the recording is torn: ${counted(torn.bytes, 'byte')} at byte ${torn.at} were skipped, and its frame or gap is lost.`;

// A recording that was edited may contain times that `Date` does not support.
const timeWords = (ms: number): string => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms));
