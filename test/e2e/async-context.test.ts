/** @lane processes */
import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { IncomingMessage } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { filter, finalize, firstValueFrom, type Observable, Subject, takeWhile, tap } from 'rxjs';
import { createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { TradeFeed, type TradeFeedModuleOptions } from '../../src/nestjs/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, relayHandler, type RelayTopic } from '../../src/relay/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { frame, Raw, Web } from '../relay/support.js';
import { inOwn, Journal, within } from '../support/journal.js';
import { waitFor } from '../support/wait-for.js';

/** What a room shares: a stream for each subscriber, and how to end the room. */
type Room = (
  options: TradeFeedOptions,
  note: Journal['note'],
) => { readonly values$: Observable<unknown>; readonly close?: () => unknown };

const relayOptions = { batchMs: 0, lingerMs: 0 };

const ofModule =
  (more: TradeFeedModuleOptions, values: (feed: TradeFeed) => Observable<unknown>): Room =>
  (options, note) => {
    Logger.overrideLogger(loggerOf(() => note('source log')));
    const feed = new TradeFeed({ ...options, share: { lingerMs: 0 }, ...more });
    return { values$: values(feed), close: () => feed.beforeApplicationShutdown() };
  };

// `shareFeed` itself: test/operators/async-context.
const rooms: Readonly<Record<string, Room>> = {
  'a relay': (options, note) => {
    const source$ = tradeFeedEvents$('market', options).pipe(
      tap(() => note('source event')),
      finalize(() => note('source finalized')),
    );
    return { values$: createRelay(source$, relayOptions).messages$() };
  },
  'a topic of a relay': (options, note) => {
    const select: RelayTopic = (events$) =>
      events$.pipe(
        filter(({ type }) => type === 'frame'),
        tap(() => note('source event')),
        finalize(() => note('source finalized')),
      );
    return { values$: createRelay(tradeFeedEvents$('market', options), relayOptions).messages$({ select }) };
  },
  'a cluster': (options) => ({
    values$: createFeedCluster('market', { ...options, engine: memoryEngine(), account: 'main' }).events$,
  }),
  'a module of NestJS': ofModule({}, (feed) => feed.events$),
  'the relay of a module of NestJS': ofModule({ relay: relayOptions }, (feed) => feed.relay.messages$()),
};

const loggerOf = (note: () => void) => ({ log: note, error: note, warn: note, debug: note });
afterAll(() => {
  Logger.overrideLogger(true);
});

const textOf = (value: unknown): string => {
  const item = value as { readonly text?: () => string; readonly data?: unknown };
  return item.text?.() ?? String(item.data);
};

let service: TradeFeedService;
beforeAll(async () => {
  service = await startTradeFeedService();
});
afterAll(() => service.shutdown());

describe.each(Object.keys(rooms))('%s', (name) => {
  it('reads its source in the context of its creation, and each subscriber receives in its own', async () => {
    const journal = new Journal();
    const key = service.createAccount({ plan: 'developer' }).createApiKey();
    const options: TradeFeedOptions = {
      baseUrl: service.baseUrl,
      // Each attempt calls it.
      apiKey: () => {
        journal.note('source key');
        return key;
      },
      classify: (_failure, verdict) => {
        journal.note('source failure');
        return verdict;
      },
      backoff: { initialDelayMs: 1, maxDelayMs: 5 },
    };
    const { values$, close } = within('the app', () => rooms[name]!(options, journal.note));
    const received = new Set<string>();
    const subscribe = (request: string, last: string): Promise<void> => {
      const isLast = (value: unknown): boolean => {
        const text = /frame-\d/.exec(textOf(value))?.[0];
        if (text) received.add(`${request} ${text}`);
        return text === last;
      };
      return journal.subscribe(request, values$.pipe(takeWhile((value) => !isLast(value), true)));
    };
    const receive = (text: string, ...requests: readonly string[]): Promise<true> =>
      waitFor(() => {
        service.push('market', text);
        return requests.every((request) => received.has(`${request} ${text}`)) || undefined;
      });

    const first = [subscribe('a', 'frame-2'), subscribe('b', 'frame-2')];
    await receive('frame-1', 'a', 'b');
    service.dropConnections();
    await receive('frame-2', 'a', 'b');
    await Promise.all(first);
    const second = subscribe('c', 'frame-3');
    await receive('frame-3', 'c');
    await second;
    await within('other', () => close?.());
    const { requests } = journal;
    const ofSource = Object.entries(requests).filter(([what]) => what.startsWith('source'));
    expect(new Set(ofSource.map(([, request]) => request))).toEqual(new Set(['the app']));
    expect(ofSource.length).toBeGreaterThanOrEqual(2);
    const ofSubscribers = Object.fromEntries(Object.entries(requests).filter(([what]) => !what.startsWith('source')));
    expect(ofSubscribers).toEqual({ ...inOwn('a', 'complete'), ...inOwn('b', 'complete'), ...inOwn('c', 'complete') });
  });
});

it('the hooks of a relay run in the context of their request, and `events$` in that of its subscriber', async () => {
  const journal = new Journal();
  const events = new Subject<RelayedEvent>();
  const relay = within('the app', () => createRelay(events));
  within('the log', () => relay.events$.subscribe(({ type }) => journal.note(type)));
  const nameOf = ({ headers }: IncomingMessage): string => String(headers['x-name']);
  const hook = (name: string) => (request: IncomingMessage) => {
    journal.note(`${name} ${nameOf(request)}`);
    return undefined;
  };
  const handler = within('the app', () =>
    relayHandler(relay, {
      authorize: async (request) => {
        await turn();
        hook('authorize')(request);
        return true;
      },
      select: hook('select'),
      sinceMs: hook('sinceMs'),
    }),
  );
  await using web = await Web.start((request, response) => within(nameOf(request), () => handler(request, response)));
  const pages = await Promise.all(['a', 'b'].map((name) => Raw.get(web.port, { 'x-name': name })));
  await Promise.all(pages.map((page) => page.until((text) => text.includes('hello'))));
  within('other', () => {
    events.next(frame('x'));
    relay.close();
  });
  await Promise.all(pages.map((page) => page.closed()));
  await waitFor(() => 'client-left' in journal.requests);
  const hooks = ['a', 'b'].flatMap((name) =>
    ['authorize', 'select', 'sinceMs'].map((what) => [`${what} ${name}`, name]),
  );
  expect(journal.requests).toEqual({
    ...Object.fromEntries(hooks),
    ...{ 'client-joined': 'the log', 'client-left': 'the log' },
  });
});

it('the status and the figures of a module and of a cluster reach each subscriber in its own context', async () => {
  const journal = new Journal();
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const cluster = { engine: memoryEngine(), account: 'status' };
  Logger.overrideLogger(false);
  const options = { baseUrl: service.baseUrl, apiKey, cluster, stats: { everyMs: 1 } };
  const feed = within('the app', () => new TradeFeed(options));
  const streams: Readonly<Record<string, Observable<unknown>>> = {
    status: feed.status$,
    figures: feed.stats$,
    'the cluster': feed.cluster!.status$,
  };
  const subscriptions = Object.entries(streams).flatMap(([what, values$]) =>
    ['a', 'b'].map((name) => within(name, () => values$.subscribe(() => journal.note(`${what} ${name}`)))),
  );
  await within('other', () => firstValueFrom(feed.stats$.pipe(filter(() => feed.status.state === 'live'))));
  for (const subscription of subscriptions) subscription.unsubscribe();
  await within('other', () => feed.beforeApplicationShutdown());
  const expected = Object.keys(streams).flatMap((what) => ['a', 'b'].map((name) => [`${what} ${name}`, name]));
  expect(journal.requests).toEqual(Object.fromEntries(expected));
});
