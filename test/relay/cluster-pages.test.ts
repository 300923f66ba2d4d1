import { afterEach, describe, expect, it } from '@jest/globals';
import type { RequestListener } from 'node:http';
import { asyncScheduler } from 'rxjs';
import type { FeedMessage } from '../../src/cluster/messages/feed-message.js';
import { relayHandler } from '../../src/relay/index.js';
import { Receiver } from '../browser/support.js';
import { Owners, realClock, Replica } from './cluster-support.js';
import { range, Web } from './support.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Two replicas behind one address, which leads to the first one until `switchTo`. */
const balanced = async () => {
  const owners = new Owners(realClock);
  const replicas = [new Replica(asyncScheduler), new Replica(asyncScheduler)] as const;
  const handlers = replicas.map(({ relay }) => relayHandler(relay, { authorize: () => true }));
  let current = handlers[0] as RequestListener;
  const web = await Web.start((request, response) => current(request, response));
  closing.push(
    () => replicas.forEach(({ relay }) => relay.close()),
    () => web[Symbol.asyncDispose](),
  );
  return {
    owners,
    replicas,
    url: web.url,
    both: (messages: readonly FeedMessage[]) => replicas.forEach((replica) => replica.receive(messages)),
    switchTo: (index: 0 | 1) => {
      current = handlers[index] as RequestListener;
      web.reset();
    },
  };
};

const pageOf = (url: string): Receiver => {
  const page = new Receiver(url);
  closing.push(() => page.subscription.unsubscribe());
  return page;
};

describe('a page whose load balancer switches to another replica', () => {
  it('receives each frame once, and no gap', async () => {
    const { owners, both, url, switchTo } = await balanced();
    both(owners.next());
    const page = pageOf(url);
    await page.until(({ types }) => types.includes('opened'));
    both(owners.frames(3));
    await page.until(({ texts }) => texts.length === 3);
    switchTo(1);
    both(owners.frames(3));
    await page.until(({ texts }) => texts.length === 6);
    switchTo(0);
    both(owners.frames(3));
    await page.until(({ texts }) => texts.length === 9);
    expect(page.texts).toEqual(range(1, 9).map(String));
    expect(page.types).not.toContain('gap');
  });

  it('receives one gap for a change of the owner', async () => {
    const { owners, both, url, switchTo } = await balanced();
    both(owners.next());
    const page = pageOf(url);
    await page.until(({ types }) => types.includes('opened'));
    both(owners.frames(2));
    await page.until(({ texts }) => texts.length === 2);
    switchTo(1);
    both(owners.next());
    both(owners.frames(2));
    await page.until(({ texts }) => texts.length === 4);
    expect(page.texts).toEqual(range(1, 4).map(String));
    const gaps = page.lifecycle.filter(({ type }) => type === 'gap');
    expect(gaps).toMatchObject([{ failure: { code: 'owner-changed' } }]);
  });
});
