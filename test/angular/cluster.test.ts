import { afterEach, expect, it } from '@jest/globals';
import { show, startApp } from './app.js';
import { TestBed } from '@angular/core/testing';
import type { RequestListener } from 'node:http';
import { asyncScheduler } from 'rxjs';
import { type AngularTradeFeed, injectTradeFeed } from '../../src/angular/inject-trade-feed.js';
import { provideTradeFeed } from '../../src/angular/provide-trade-feed.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { relayHandler } from '../../src/relay/index.js';
import { Owners, realClock, Replica } from '../relay/cluster-support.js';
import { range, Web } from '../relay/support.js';
import { waitFor } from '../support/wait-for.js';

class Reader {
  readonly feed: AngularTradeFeed = injectTradeFeed();
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

it('an app whose server is replaced notices nothing but the gap of the change of the owner', async () => {
  const owners = new Owners(realClock);
  const [first, second] = [new Replica(asyncScheduler), new Replica(asyncScheduler)];
  const handlerOf = ({ relay }: Replica): RequestListener => relayHandler(relay, { authorize: () => true });
  let current = handlerOf(first);
  const web = await Web.start((request, response) => current(request, response));
  closing.push(
    () => [first, second].forEach(({ relay }) => relay.close()),
    () => web[Symbol.asyncDispose](),
    () => TestBed.resetTestingModule(),
  );
  const both = (messages: ReturnType<Owners['frames']>): void =>
    [first, second].forEach((each) => each.receive(messages));
  both(owners.next());
  startApp(provideTradeFeed({ url: web.url, backoff: { initialDelayMs: 1, maxDelayMs: 5 }, lingerMs: 0 }));
  const { feed } = show(Reader).componentInstance;
  const events: RelayedEvent[] = [];
  feed.events$.subscribe((event) => events.push(event));
  const texts = () => events.flatMap((event) => (event.type === 'frame' ? [event.text()] : []));
  await waitFor(() => feed.status().state === 'live');
  both(owners.frames(2));
  await waitFor(() => texts().length === 2);

  current = handlerOf(second);
  web.reset();
  both(owners.frames(2));
  await waitFor(() => texts().length === 4);
  expect(events.filter(({ type }) => type === 'gap')).toEqual([]);

  both(owners.next());
  both(owners.frames(2));
  await waitFor(() => texts().length === 6);
  expect(texts()).toEqual(range(1, 6).map(String));
  expect(events.filter(({ type }) => type === 'gap')).toMatchObject([{ failure: { code: 'owner-changed' } }]);
  expect([feed.status().state, feed.failure()]).toEqual(['live', undefined]);
});
