// Prints for each room what of the first subscriber's request is left after it has left, while others stay: `freed` or
// `held`. The room is created outside all requests. Needs --expose-gc.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { filter, lastValueFrom, take } from 'rxjs';
import { shareFeed, tradeFeedEvents$ } from 'rx-trade-feed';
import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
import { TradeFeed } from 'rx-trade-feed/nestjs';
import { createRelay } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';

Logger.overrideLogger(false);
const requests = new AsyncLocalStorage();
const service = await startTradeFeedService();
const feed = () => {
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  return { baseUrl: service.baseUrl, apiKey, backoff: { initialDelayMs: 1, maxDelayMs: 5 } };
};
const frames = filter(({ type }) => type === 'frame');
const relay = createRelay(tradeFeedEvents$('market', feed()));
const module = new TradeFeed({ ...feed(), stats: { everyMs: 1 } });
const rooms = {
  shareFeed: tradeFeedEvents$('market', feed()).pipe(shareFeed()),
  relay: relay.messages$(),
  topic: relay.messages$({ select: frames }),
  cluster: createFeedCluster('market', { ...feed(), engine: memoryEngine(), account: 'main' }).events$,
  nestjs: module.events$,
  'status of nestjs': module.status$,
  'figures of nestjs': module.stats$,
  'relay of nestjs': module.relay.messages$(),
};

/** Subscribes in a request and leaves after some values, while a subscriber outside of it has joined. */
const visit = async (values$, count) => {
  const request = {};
  const first = requests.run(request, () => lastValueFrom(values$.pipe(take(count))));
  values$.subscribe();
  const pushing = setInterval(() => service.push('market', 'a frame'), 1);
  await first;
  clearInterval(pushing);
  return new WeakRef(request);
};

const isFreed = async (request) => {
  for (let n = 0; n < 50 && request.deref() !== undefined; n += 1) {
    await turn();
    globalThis.gc();
  }
  return request.deref() === undefined;
};

const result = {};
for (const [name, values$] of Object.entries(rooms)) {
  // A relay says hello before it reads its source; the status may stay the same.
  const request = await visit(values$, name.startsWith('status') ? 1 : 4);
  result[name] = (await isFreed(request)) ? 'freed' : 'held';
}
console.log(JSON.stringify(result));
process.exit();
