import { afterEach, expect, it } from '@jest/globals';
import * as t from 'io-ts';
import { asyncScheduler, filter, from, lastValueFrom, map, Observable, toArray } from 'rxjs';
import { type RelayedValue, relayFeed$ } from '../../src/browser/index.js';
import { connectionStatus } from '../../src/operators/connection-status.js';
import { decodeWith } from '../../src/operators/decode-with.js';
import { feedStats } from '../../src/operators/feed-stats.js';
import { frames } from '../../src/operators/frames.js';
import { gaps } from '../../src/operators/gaps.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { createRelay, relayHandler, type RelayTopic } from '../../src/relay/index.js';
import { disconnected, gapOf, opened, reconnecting, watermark } from '../operators/stream.js';
import { frame, Source, Web } from '../relay/support.js';
import { quick } from './support.js';
import { waitFor } from '../support/wait-for.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Numbered {
  readonly n: number;
}

const at = 1_000_000;
const value = (n: number, time: number): RelayedValue<Numbered> => ({ type: 'value', at: time, value: { n } });
const events: readonly (RelayedEvent | RelayedValue<Numbered>)[] = [
  opened(at),
  watermark(at),
  value(1, at + 100),
  value(2, at + 900),
  watermark(at + 1_100),
  value(3, at + 1_200),
  disconnected(at + 1_300),
  reconnecting(at + 1_300, 100),
  opened(at + 1_500, 2),
  gapOf(at + 1_300, at + 1_500),
  value(4, at + 2_100),
  watermark(at + 3_000),
];
const numberIn = (item: AnyFrame | RelayedValue<Numbered>): number => (item.type === 'value' ? item.value.n : NaN);
const all = <T>(source: Observable<T>): Promise<T[]> => lastValueFrom(source.pipe(toArray()));

it('decoded values of a topic arrive over HTTP as values, with their times', async () => {
  const source = new Source();
  // The clock stands still, because the watermarks of a slow machine would move the times of the values.
  const now = Date.now();
  const scheduler = { now: () => now, schedule: asyncScheduler.schedule.bind(asyncScheduler) };
  const relay = createRelay(source.events$, { batchMs: 0, scheduler });
  const select: RelayTopic = decodeWith(t.type({ n: t.number }));
  const web = await Web.start(relayHandler(relay, { authorize: () => true, select: () => select }));
  closing.push(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  const seen: (RelayedEvent | RelayedValue<Numbered>)[] = [];
  const page = relayFeed$<Numbered>(web.url, quick).subscribe((event) => seen.push(event));
  closing.push(() => page.unsubscribe());
  await waitFor(() => relay.status().clients.length === 1);
  source.emit(opened(now), frame('{"n":1}', now + 1), frame('no JSON', now + 2), frame('{"n":2}', now + 3));
  await waitFor(() => seen.filter(({ type }) => type === 'value').length === 2);
  expect(seen.filter(({ type }) => type !== 'watermark')).toEqual([opened(now), value(1, now + 1), value(2, now + 3)]);
});

it('values pass a second relay over HTTP, unchanged and through its topics', async () => {
  const serve = async (events$: Parameters<typeof createRelay>[0], topics: ReadonlyMap<string, RelayTopic>) => {
    const relay = createRelay(events$, { batchMs: 0 });
    const select = ({ url = '' }: { readonly url?: string | undefined }) => topics.get(url);
    const web = await Web.start(relayHandler(relay, { authorize: () => true, select }));
    closing.push(
      () => web[Symbol.asyncDispose](),
      () => relay.close(),
    );
    return { relay, base: `http://127.0.0.1:${web.port}` };
  };
  const source = new Source();
  const first = await serve(source.events$, new Map([['/values', decodeWith(t.type({ n: t.number }))]]));
  const numbers: RelayTopic = map((event: RelayedEvent | RelayedValue<Numbered>) =>
    event.type === 'value' ? event.value.n : event,
  );
  const topics = new Map<string, RelayTopic>([
    ['/same', (events$) => events$],
    ['/odd', filter((event: RelayedEvent | RelayedValue<Numbered>) => event.type !== 'value' || event.value.n !== 2)],
    ['/numbers', numbers],
  ]);
  const second = await serve(relayFeed$(`${first.base}/values`, quick), topics);
  const paths = ['/whole', ...topics.keys()];
  const seen = new Map(paths.map((path): [string, (RelayedEvent | RelayedValue<unknown>)[]] => [path, []]));
  const failed: unknown[] = [];
  for (const path of paths) {
    const page = relayFeed$<unknown>(`${second.base}${path}`, quick).subscribe({
      next: (event) => seen.get(path)?.push(event),
      error: (error: unknown) => failed.push(error),
    });
    closing.push(() => page.unsubscribe());
  }
  await waitFor(() => second.relay.status().clients.length === 4 && first.relay.status().clients.length === 1);
  // Ahead of the clock, because the watermarks of a slow machine would move the times of the values.
  const now = Date.now() + 1_000;
  source.emit(opened(now), frame('{"n":1}', now + 1), frame('{"n":2}', now + 2), frame('{"n":3}', now + 3));
  source.emit({ ...disconnected(now + 4) });
  const isOver = (path: string) => seen.get(path)?.some(({ type }) => type === 'disconnected') === true;
  await waitFor(() => failed.length > 0 || paths.every(isOver));
  expect(failed).toEqual([]);
  const valuesAt = (path: string) => seen.get(path)?.filter(({ type }) => type === 'value');
  const all = [value(1, now + 1), value(2, now + 2), value(3, now + 3)];
  expect(valuesAt('/whole')).toEqual(all);
  expect(valuesAt('/same')).toEqual(all);
  expect(valuesAt('/odd')).toEqual([all[0], all[2]]);
  expect(valuesAt('/numbers')).toEqual(all.map((each) => ({ ...each, value: each.value.n })));
});

it('without a type the stream has no values: a switch over the events needs no case for them', () => {
  const plain: Observable<RelayedEvent> = relayFeed$('https://app.example.com/feed');
  const typed: Observable<RelayedEvent | RelayedValue<Numbered>> = relayFeed$<Numbered>('https://app.example.com/feed');
  // @ts-expect-error -- a stream with values is not one without
  const wrong: Observable<RelayedEvent> = relayFeed$<Numbered>('https://app.example.com/feed');
  for (const each of [plain, typed, wrong]) expect(each).toBeInstanceOf(Observable);
});

it('connectionStatus ignores values', async () => {
  const states = (await all(from(events).pipe(connectionStatus()))).map(({ state }) => state);
  expect(states).toEqual(['live', 'reconnecting', 'live']);
  expect(await all(from([value(1, at)]).pipe(connectionStatus()))).toEqual([
    { state: 'live', since: at, connection: 1 },
  ]);
});

it('frames emits values, like other items that were created from frames', async () => {
  const numbered = await all(from(events).pipe(frames()));
  expect(numbered.map(numberIn)).toEqual([1, 2, 3, 4]);
});

it('gaps does not emit values, but a value ends an outage at its time', async () => {
  expect(await all(from(events).pipe(gaps()))).toEqual([events[9]]);
  const unopened = [opened(at), disconnected(at + 5), value(1, at + 50)];
  expect(await all(from(unopened).pipe(gaps()))).toMatchObject([{ from: at + 5, to: at + 50 }]);
});

it('windows contain values by their times', async () => {
  const windows = await all(from(events).pipe(tumblingWindow({ lengthMs: 1_000 })));
  expect(windows.map(({ start, frames: items, complete }) => [start - at, items.map(numberIn), complete])).toEqual([
    [0, [1, 2], true],
    [1_000, [3], false],
    [2_000, [4], true],
  ]);
});

it('feedStats counts a value as a frame without bytes', async () => {
  const [stats] = await all(from(events).pipe(feedStats()));
  expect(stats).toMatchObject({ frames: 4, bytes: 0 });
});
