import { map, type OperatorFunction, type SchedulerLike, VirtualTimeScheduler } from 'rxjs';
import type { EngineRefused, FeedEvent } from '../../src/protocol/event.js';
import { relayError } from '../../src/browser/relay-error.js';
import { Frame } from '../../src/protocol/frame.js';
import type { AccumulatedWindow, FeedWindow } from '../../src/operators/window/window.js';
import { disconnected, frameOf, gapOf, issued, opened, opening, reconnecting, requested, watermark } from './stream.js';

/** Creates the event for a letter of a marble diagram, with its time. */
export type AtTime<E = FeedEvent> = (at: number) => E;

// a to f: frames. t: an attempt begins. k: it fails. o: a connection opens, and is complete at once. O: it opens, and has to settle. x: it is lost. l: one to a relay is lost. r: the wait for the next one.
const frames = Object.fromEntries([...'abcdef'].map((text): [string, AtTime] => [text, (at) => frameOf(text, at)]));
export const letters: Readonly<Record<string, AtTime>> = {
  ...frames,
  t: requested,
  o: opened,
  O: opening,
  x: disconnected,
  k: (at) => disconnected(at, { stage: 'ticket', status: 503, closeCode: undefined }),
  l: (at) => ({ type: 'disconnected', at, failure: relayError({ code: 'relay-lost', endedAt: at }) }),
  r: (at) => reconnecting(at, 1),
};

/**
 * Reads events with their times: `o3` opens, `a5` is a frame, `x9` ends the connection, `x9<7` too, but since 7, `g7-9` is
 * a gap, `g7-9+3` one of 3 frames, `w9` a watermark, `i9` a ticket, `R9` what the engine of a cluster refuses. For other
 * letters see {@link letters}; the rest are frames.
 */
export const events = (words: string): FeedEvent[] =>
  words.split(' ').map((word) => {
    const [at, other, missed] = word.slice(1).split(/[<+-]/).map(Number) as [number, number, number?];
    const letter = word.charAt(0);
    if (letter === 'g') return { ...gapOf(at, other), ...(missed !== undefined && { missed }) };
    if (letter === 'w') return watermark(at);
    if (letter === 'i') return issued(at);
    if (letter === 'R') return refused(at) as unknown as FeedEvent;
    if (letter === 'x' && word.includes('<')) return disconnected(at, { endedAt: other });
    return letters[letter]?.(at) ?? frameOf(letter, at);
  });

const refused = (at: number): EngineRefused => {
  return { type: 'engine-refused', at, since: at, operation: 'connect', message: 'no answer', advice: 'Look.' };
};

/** Gives each event the time of its place in the diagram. */
export const stamped = <E = FeedEvent>(scheduler: SchedulerLike): OperatorFunction<AtTime<E>, E> =>
  map((make) => make(scheduler.now()));

/**
 * Describes a window in one line: its time, its items, its gaps, and why it's incomplete. The reason `gap` is not
 * written after gaps.
 */
export const inWords = (window: FeedWindow<unknown> | AccumulatedWindow<unknown>): string => {
  const { start, end, count, gaps, complete, reason } = window;
  return [
    `${start}-${end}`,
    'frames' in window ? window.frames.map(nameOf).join('') : JSON.stringify(window.value),
    'frames' in window && count === window.frames.length ? '' : `${count} items`,
    'frames' in window && window.dropped > 0 ? `${window.dropped} dropped` : '',
    ...gaps.map(({ from, to }) => `gap ${from}-${to}`),
    reason === 'gap' && gaps.length > 0 ? '' : (reason ?? ''),
    complete === 'reason' in window ? 'and contradicts itself' : '',
  ]
    .filter((word) => word !== '')
    .join(' ');
};

/** Maps each window to its line. */
export const words = (): OperatorFunction<FeedWindow<unknown> | AccumulatedWindow<unknown>, string> => map(inWords);

const nameOf = (item: unknown): string => (item instanceof Frame ? item.text() : JSON.stringify(item));

/** A clock that never fires, so that windows depend only on their events, on any machine. */
export const stopped = (): SchedulerLike => new VirtualTimeScheduler();
