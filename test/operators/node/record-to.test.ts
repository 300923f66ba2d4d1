import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import {
  concat,
  config,
  defer,
  EMPTY,
  from,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  retry,
  Subject,
  Subscription,
  throwError,
} from 'rxjs';
import { Decoded, type FeedEvent, Frame, type RecordOptions, recordTo } from '../../../src/index.js';
import { frameLine, gapLine } from '../../../src/operators/node/recording/recording-line.js';
import { tempFolder } from '../../cli/support/temp-folder.js';
import { openFiles } from './support/open-files.js';
import { frameAt, gapBetween, payloadsOf, replayed } from './support/recorded.js';
import { waitFor } from '../../support/wait-for.js';

const folder = tempFolder();
let count = 0;
const fresh = (): string => folder.path(`recording-${(count += 1)}`);
const text = (path: string): string => readFileSync(path, 'utf8');

const opened = (at: number, connection = 1): FeedEvent => ({ type: 'opened', at, feed: 'market', connection });
const outage: readonly FeedEvent[] = [
  { type: 'disconnected', at: 14, failure: gapBetween(14, 20).failure },
  { type: 'reconnecting', at: 14, delayMs: 6, attempt: 1, verdict: 'renew' },
];
const lifecycle: readonly FeedEvent[] = [
  { type: 'ticket-requested', at: 1, feed: 'market' },
  { type: 'ticket-issued', at: 2, feed: 'market', expiresAt: '2026-01-01T00:00:00Z' },
  opened(3),
  { type: 'disconnected', at: 4, failure: gapBetween(4, 5).failure },
  { type: 'reconnecting', at: 4, delayMs: 1, attempt: 1, verdict: 'renew' },
];

/** All notifications of a subscription. */
const told = (source: Observable<unknown>): unknown[] => {
  const seen: unknown[] = [];
  source.subscribe({
    next: (v) => seen.push(v),
    error: (e) => seen.push(['error', e]),
    complete: () => seen.push('end'),
  });
  return seen;
};

describe('recordTo', () => {
  it('writes only frames and gaps, and a Decoded as its frame', () => {
    const path = fresh();
    const [one, two, gap] = [frameAt(10), frameAt(30), gapBetween(10, 20)];
    const events = [
      opened(3),
      { type: 'watermark', at: 9 },
      one,
      ...outage,
      opened(20),
      gap,
      new Decoded({ n: 1 }, two),
      'text',
      undefined,
      null,
      7,
      { type: 'gap' },
    ];
    expect(told(of(...events).pipe(recordTo(path)))).toEqual([...events, 'end']);
    expect(text(path)).toBe(frameLine(one) + gapLine(gap) + frameLine(two));
  });

  it('writes a gap for the time during which a feed was stopped, before the next frame', async () => {
    const path = fresh();
    const { failure } = gapBetween(14, 20);
    const subscriptions = [
      concat(
        from<FeedEvent[]>([opened(3), frameAt(10), { type: 'stopped', at: 15, failure }]),
        throwError(() => failure),
      ),
      from<FeedEvent[]>([{ type: 'ticket-requested', at: 18, feed: 'market' }, opened(20), frameAt(30)]),
    ];
    const source = defer(() => subscriptions.shift()!).pipe(retry(1));
    source.pipe(recordTo(path)).subscribe();
    expect(
      (await replayed(path)).map((event) => (event.type === 'gap' ? [event.from, event.to] : event.receivedAt)),
    ).toEqual([10, [14, 20], 30]);
  });

  it('opens its file on subscription, before it subscribes to its source', () => {
    const path = fresh();
    const seen: boolean[] = [];
    const source = new Subject<Frame>();
    const recorded$ = of(1).pipe(
      map(() => seen.push(existsSync(path))),
      recordTo(path),
    );
    expect(existsSync(path)).toBe(false);
    recorded$.subscribe();
    expect(seen).toEqual([true]);
    expect(source.observed).toBe(false);
  });

  it('has written the complete file when it completes or errors, and after unsubscribing', () => {
    for (const end$ of [EMPTY, throwError(() => new Error('end'))]) {
      const path = fresh();
      const source = new Subject<Frame>();
      let atEnd = '';
      const look = (): void => {
        atEnd = text(path);
      };
      source.pipe(recordTo(path)).subscribe({ error: look, complete: look });
      source.next(frameAt(1));
      (end$ as Observable<Frame>).subscribe(source);
      expect(atEnd).toBe(frameLine(frameAt(1)));
    }
    const path = fresh();
    const source = new Subject<Frame>();
    const subscription = source.pipe(recordTo(path)).subscribe();
    source.next(frameAt(1));
    subscription.unsubscribe();
    expect(text(path)).toBe(frameLine(frameAt(1)));
    expect(openFiles()).not.toContain(path);
  });

  it.each([
    ['completes', EMPTY],
    ['errors', throwError(() => new Error('a bad key'))],
  ])('removes the empty file when its source %s before the first line', (_how, source) => {
    const path = fresh();
    told(source.pipe(recordTo(path)));
    told(merge(of(...lifecycle), source).pipe(recordTo(path)));
    expect(existsSync(path)).toBe(false);
  });

  it('adds one exit listener for all recordings', () => {
    const before = process.listenerCount('exit');
    const recordings = new Subscription();
    for (let n = 0; n < 11; n += 1) recordings.add(NEVER.pipe(recordTo(fresh())).subscribe());
    expect(process.listenerCount('exit')).toBe(before + 1);
    recordings.unsubscribe();
    expect(process.listenerCount('exit')).toBe(before);
  });

  describe('with a relative path', () => {
    const home = process.cwd();
    afterEach(() => process.chdir(home));
    it('resolves the path on subscription, for all files', async () => {
      const [first, second] = [folder.path('first'), folder.path('second')];
      mkdirSync(first);
      mkdirSync(second);
      const source = new Subject<Frame>();
      const recorded$ = source.pipe(recordTo('feed', { maxFileBytes: 1 }));
      process.chdir(first);
      recorded$.subscribe();
      source.next(frameAt(1, 'a'));
      process.chdir(second);
      source.next(frameAt(2, 'b'));
      source.complete();
      expect(readdirSync(first)).toEqual(['feed', 'feed.1']);
      expect(readdirSync(second)).toEqual([]);
      expect(await payloadsOf(`${first}/feed`)).toEqual(['a', 'b']);
    });
  });

  describe('appending to an existing recording', () => {
    const first = frameLine(frameAt(1_000));

    it.each([
      ['a frame', [frameAt(5_000)], 5_000],
      ['the opening of a connection', [...lifecycle.slice(0, 2), opened(4_900), frameAt(5_000)], 4_900],
      ['a gap', [gapBetween(4_000, 4_500), frameAt(5_000)], 4_500],
    ])('records the time in between as a gap, up to the first event: %s', async (_what, events, to) => {
      const path = fresh();
      writeFileSync(path, first);
      of(...events)
        .pipe(recordTo(path))
        .subscribe();
      const [before, gap, ...rest] = await replayed(path);
      expect(before).toMatchObject({ receivedAt: 1_000 });
      expect(gap).toMatchObject({ type: 'gap', from: 1_000, to, durationMs: to - 1_000 });
      expect(gap?.type === 'gap' && gap.failure).toMatchObject({
        code: 'connection-closed',
        stage: 'stream',
        endedAt: 1_000,
        message: expect.stringContaining('The recording stopped and continued later.'),
      });
      expect(rest.map(({ type }) => type)).toEqual(
        events.filter(({ type }) => /frame|gap/.test(type)).map(({ type }) => type),
      );
    });

    it('appends with each subscription, and removes a torn line first', async () => {
      const path = fresh();
      const source$ = of(frameAt(1, 'a'), frameAt(2, 'b')).pipe(recordTo(path, { maxFileBytes: 300 }));
      source$.subscribe();
      source$.subscribe();
      expect(await payloadsOf(path)).toEqual(['a', 'b', 'gap', 'a', 'b']);
      let newest = 0;
      while (existsSync(`${path}.${newest + 1}`)) newest += 1;
      expect(newest).toBeGreaterThan(0);
      writeFileSync(`${path}.${newest}`, text(`${path}.${newest}`).slice(0, -4));
      source$.subscribe();
      expect(await payloadsOf(path)).toEqual(['a', 'b', 'gap', 'a', 'gap', 'a', 'b']);
    });
  });

  describe('when the file cannot be written', () => {
    const onUnhandledError = config.onUnhandledError;
    afterEach(() => {
      config.onUnhandledError = onUnhandledError;
    });

    // A Linux device that is always full.
    const full = (options?: RecordOptions) => {
      const source = new Subject<Frame>();
      return { source, seen: told(source.pipe(recordTo('/dev/full', options))) };
    };
    const noSpace: unknown = expect.objectContaining({
      name: 'RecordingError',
      path: '/dev/full',
      message: "Can't write the recording /dev/full: no space is left on the disk.",
    });

    it('errors when the disk is full', async () => {
      const { source, seen } = full();
      source.next(frameAt(1));
      await waitFor(() => seen.length > 1);
      expect(seen).toEqual([frameAt(1), ['error', noSpace]]);
      expect(source.observed).toBe(false);
      expect(openFiles()).not.toContain('/dev/full');
    });

    it('calls `onError` instead, and the stream continues', async () => {
      const onError = jest.fn();
      const { source, seen } = full({ onError });
      source.next(frameAt(1));
      await waitFor(() => onError.mock.calls.length > 0);
      source.next(frameAt(2));
      source.complete();
      expect(seen).toEqual([frameAt(1), frameAt(2), 'end']);
      expect(onError.mock.calls).toEqual([[noSpace]]);
    });

    it('reports a failure as unhandled when there is no subscriber: at unsubscription, and after the error of the source', async () => {
      const unhandled: unknown[] = [];
      config.onUnhandledError = (error) => unhandled.push(error);
      const left = new Subject<Frame>();
      const subscription = left.pipe(recordTo('/dev/full')).subscribe();
      left.next(frameAt(1));
      subscription.unsubscribe();
      const { source, seen } = full();
      source.next(frameAt(1));
      const failure = new Error('of the source');
      source.error(failure);
      expect(seen).toEqual([frameAt(1), ['error', failure]]);
      await waitFor(() => unhandled.length > 1);
      expect(unhandled).toEqual([noSpace, noSpace]);
    });
  });

  describe('its options', () => {
    it.each([
      ['', {}, "`path` must be a path: a text that isn't empty"],
      [7 as unknown as string, {}, '`path` must be a path'],
      ['f', { maxFileBytes: 0 }, '`maxFileBytes` must be a number of bytes, 1 or more, got 0'],
      ['f', { maxWaitingBytes: NaN }, '`maxWaitingBytes` must be a number of bytes, 1 or more'],
      ['f', { maxFileBytes: '7' as unknown as number }, '`maxFileBytes` must be a number of bytes, 1 or more'],
      ['f', { onError: 'ignore' as 'error' }, "`onError` must be 'error' or a function"],
      ['f', { maxFiles: 3 }, "`maxFiles` doesn't exist: the options are maxFileBytes, maxWaitingBytes, onError"],
    ])('are checked when the operator is called: %j, %j', (path, options, message) => {
      expect(() => recordTo(path, options as RecordOptions)).toThrow(
        expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
      );
    });
  });
});
