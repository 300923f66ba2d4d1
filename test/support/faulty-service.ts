import { map, type Observable, timer } from 'rxjs';
import type { FeedEvent, TradeFeedOptions } from '../../src/index.js';
import { type ServiceEvent, startTradeFeedService } from '../../src/testing/index.js';
import type { Certificate } from './certificate.js';
import { type FaultProxyOptions, startFaultProxy } from './fault-proxy.js';
import { optionsFor } from './feed.js';

export type FaultyService = Awaited<ReturnType<typeof startFaultyService>>;

/** Starts a service whose n-th payload starts with n, and a proxy that every client connects through. */
export const startFaultyService = async (
  { tls, ...network }: FaultProxyOptions & { readonly tls?: Certificate },
  options: TradeFeedOptions = {},
) => {
  const proxy = await startFaultProxy(network);
  const publicUrl = `http${tls ? 's' : ''}://127.0.0.1:${proxy.port}`;
  const service = await startTradeFeedService({
    tls,
    publicUrl,
    sources: { market: counted$ },
    limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 0 },
  });
  proxy.target = Number(new URL(service.baseUrl).port);
  const serviceEvents: ServiceEvent[] = [];
  service.events$.subscribe((event) => serviceEvents.push(event));
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  return {
    proxy,
    options: optionsFor({ baseUrl: publicUrl }, { apiKey, ...(tls && { tls: { ca: tls.cert } }), ...options }),
    /** The events of the service. */
    serviceEvents,
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await service.shutdown();
    },
  };
};

// From a few bytes to more than a single read.
const fillingOf = (n: number): number => (n % 100 === 99 ? 70_000 : n % 100);
const counted$: Observable<string> = timer(0, 1).pipe(map((n) => `${n} ${'x'.repeat(fillingOf(n))}`));

/** Returns the errors in the frames of a feed: truncated frames, frames out of order, and losses without a gap. */
export const frameErrors = (events: readonly FeedEvent[]): string[] => {
  const wrong: string[] = [];
  let last: number | undefined;
  let mayMiss = true;
  for (const event of events) {
    if (event.type === 'gap' || event.type === 'opened') mayMiss = event.type === 'gap' || last === undefined;
    if (event.type !== 'frame') continue;
    const [digits = '', filling = ''] = event.text().split(' ');
    const n = Number(digits);
    if (filling.length !== fillingOf(n)) wrong.push(`${n} is not whole`);
    if (last !== undefined && (mayMiss ? n <= last : n !== last + 1)) wrong.push(`${n} after ${last}`);
    mayMiss = false;
    last = n;
  }
  return wrong;
};
