import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { map } from 'rxjs';
import type { DropReport } from '../../../src/operators/bounded/drop-report.js';
import { type ReadableOptions, toReadable } from '../../../src/operators/node/to-readable.js';
import { marbles } from '../stream.js';

const mine = new Error('mine');

/** The actions of a diagram on a stream: read it, destroy it. */
const acts: Readonly<Record<string, (stream: Readable) => string>> = {
  // `o`: no chunk is ready.
  r: (stream) => (stream.read() as string | null) ?? 'o',
  x: (stream) => {
    stream.destroy();
    return 'x';
  },
};

interface Diagrams {
  readonly source: string;
  /** `r` and `x`: see `acts`. One for each stream. */
  readonly acts: readonly string[];
  /** The results of the actions: the chunk that was read, or `o`. */
  readonly given: readonly string[];
  readonly subs: readonly string[];
}

/** How a stream was closed: by an error, at its end, or before that. */
type Closed = Error | 'ended' | 'destroyed';

/** Runs the diagrams. Returns the reports of drops with their times, and how each stream was closed. */
const check = async (
  diagrams: Diagrams,
  options: ReadableOptions<string> = {},
): Promise<{ reports: (readonly [at: number, report: DropReport])[]; closed: Closed[] }> => {
  const reports: (readonly [number, DropReport])[] = [];
  const streams: Readable[] = [];
  const closing: Promise<unknown>[] = [];
  marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
    const source$ = cold(diagrams.source, { a: 'a', b: 'b', c: 'c', d: 'd', e: 'e', 0: null as never }, mine);
    const onDrop = (report: DropReport) => reports.push([scheduler.now(), report]);
    const make = toReadable<string>({ onDrop, scheduler, ...options });
    for (const [which, marks] of diagrams.acts.entries()) {
      const stream = make(source$);
      streams.push(stream);
      closing.push(once(stream, 'close').catch((error: unknown) => error));
      expectObservable(cold(marks, acts).pipe(map((act) => act(stream)))).toBe(diagrams.given[which] as string);
    }
    expectSubscriptions(source$.subscriptions).toBe([...diagrams.subs]);
  });
  await turn();
  const closed: Closed[] = [];
  for (const [which, stream] of streams.entries()) {
    const isEnded = stream.readableEnded;
    stream.destroy();
    const error = await closing[which];
    closed.push(error instanceof Error ? error : isEnded ? 'ended' : 'destroyed');
  }
  return { reports, closed };
};

describe('the subscription of toReadable', () => {
  it('begins when it is first read, and ends with the source', async () => {
    const { closed } = await check({
      source: '   -a-b-|',
      acts: ['  ---r-r-r-r-'],
      given: [' ---o-a-b-o-'],
      subs: ['  ---^----!'],
    });
    expect(closed).toEqual(['ended']);
  });

  it('does not begin without a read', async () => {
    const { closed } = await check({ source: '-a|', acts: ['-', '--x-r'], given: ['-', '--x-o'], subs: [] });
    expect(closed).toEqual(['destroyed', 'destroyed']);
  });

  it('ends when the stream is destroyed, whether or not a chunk is ready', async () => {
    await check({
      source: '  -a-b-c-d-',
      acts: ['  r-r-x---'],
      given: [' o-a-x---'],
      subs: ['  ^---!'],
    });
    await check({
      source: '  -----a-|',
      acts: ['  r-x'],
      given: [' o-x'],
      subs: ['  ^-!'],
    });
  });

  it('ends with the error of the source, which closes the stream after the waiting chunks', async () => {
    const { closed } = await check({
      source: '  -a-b-#',
      acts: ['  r------rrr'],
      given: [' o------abo'],
      subs: ['  ^----!'],
    });
    expect(closed).toEqual([mine]);
  });

  it('ends with a value that cannot be a chunk', async () => {
    const { closed } = await check({
      source: '  -a-0-b-',
      acts: ['  r-r-----'],
      given: [' o-a-----'],
      subs: ['  ^--!'],
    });
    expect(closed).toEqual([expect.objectContaining({ message: expect.stringContaining('null cannot be a chunk') })]);
  });

  it('is separate for each stream', async () => {
    await check({
      source: '  -a-b-c-|',
      acts: ['  r-r-x------', '---r-r-r-r-r', '-------x'],
      given: [' o-a-x------', '---o-a-b-c-o', '-------x'],
      subs: ['  ^---!      ', '---^------!'],
    });
  });
});

describe('the bounds of toReadable', () => {
  it('drop the oldest values while the source emits; one chunk is ready in the stream', async () => {
    const source = '  -a-b-c-d-|';
    const acts = ['   r-------rrr'];
    const subs = ['   ^--------!'];
    const { reports } = await check({ source, acts, given: ['o-------ado'], subs }, { capacity: 1 });
    expect(reports).toEqual([[8, { reason: 'overflow', dropped: 2, droppedBytes: 4, total: 2, from: 5, to: 7 }]]);
    const more = { source, acts: ['r-------rrrr'], subs };
    await check({ ...more, given: ['o-------acdo'] }, { capacity: 2 });
    expect((await check({ ...more, given: ['o-------abcd'] }, { capacity: 3 })).reports).toEqual([]);
  });

  it("drop the newest values with `overflow: 'drop-newest'`", async () => {
    const source = '  -a-b-c-d-e-|';
    const acts = ['   r-----r-r-r-r'];
    const given = ['  o-----a-b-d-e'];
    const subs = ['   ^----------!'];
    const { reports } = await check({ source, acts, given, subs }, { capacity: 1, overflow: 'drop-newest' });
    expect(reports).toMatchObject([[6, { dropped: 1, from: 5, to: 5 }]]);
  });

  it("end the subscription at the first value too many with `overflow: 'error'`", async () => {
    const source = '  -a-b-c-d-|';
    const acts = ['   r--------rrr'];
    const given = ['  o--------abo'];
    const subs = ['   ^----!'];
    const { reports, closed } = await check({ source, acts, given, subs }, { capacity: 1, overflow: 'error' });
    expect(reports).toMatchObject([[9, { reason: 'overflow', dropped: 1, from: 5, to: 5 }]]);
    expect(closed).toEqual([expect.objectContaining({ name: 'OverflowError' })]);
  });

  it('count the waiting values as dropped when the stream is destroyed', async () => {
    const source = '  -a-b-c-d-|';
    const acts = ['   r-----x'];
    const given = ['  o-----x'];
    const subs = ['   ^-----!'];
    const { reports } = await check({ source, acts, given, subs });
    expect(reports).toEqual([[6, { reason: 'ended', dropped: 2, droppedBytes: 4, total: 2, from: 6, to: 6 }]]);
  });
});
