import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { startTradeFeedService, type TradeFeedService } from 'rx-trade-feed/testing';
import { bytesOf, garbage, last, requests } from './client-requests.js';
import { fuzz, seed, timeoutFor, within } from './fuzz.js';
import { cutAt, places } from './mutated.js';
import { answersIn, connectTo, type GoodClient, goodClient, receivedBy, sendTo } from './raw-client.js';

const refusals = [400, 401, 403, 404, 405, 408, 413, 417, 422, 426, 431, 501, 505];

describe(`the local service and hostile HTTP, with FUZZ_SEED=${seed}`, () => {
  let service: TradeFeedService;
  let good: GoodClient;
  let apiKey: string;
  beforeAll(async () => {
    service = await startTradeFeedService({ limits: { ticketsPerWindow: Infinity, requestTimeoutMs: 5_000 } });
    good = await goodClient(service);
    apiKey = service.createAccount().createApiKey();
  });
  afterAll(async () => {
    await good[Symbol.asyncDispose]();
    await within(3_000, 'shutdown()', service.shutdown());
  });

  it(
    'answers each request in order, also if requests arrive in pieces or together',
    () =>
      fuzz('requests in pieces, pipelined', fc.tuple(requests, places), 96, async ([all, cuts]) => {
        const socket = connectTo(service);
        const received = receivedBy(socket);
        await sendTo(socket, cutAt(bytesOf(all, apiKey), cuts), 'stay');
        expect(answersIn(await received).map(({ status }) => status)).toEqual(
          [...all, last].map(({ status }) => status),
        );
        return `${all.length} requests`;
      }),
    timeoutFor(300),
  );

  it(
    'refuses invalid bytes or closes the connection, and serves a valid client meanwhile',
    () =>
      fuzz(
        'garbage in place of HTTP',
        fc.tuple(garbage, places, fc.constantFrom('end' as const, 'end' as const, 'reset' as const)),
        96,
        async ([bytes, cuts, end]) => {
          const socket = connectTo(service);
          const received = receivedBy(socket);
          const [answered] = await Promise.all([received, sendTo(socket, cutAt(bytes, cuts), end), good.isServed()]);
          const statuses = answersIn(answered).map(({ status }) => status);
          for (const status of statuses) expect(refusals).toContain(status);
          return statuses.length === 0 ? 'no answer' : String(statuses[0]);
        },
      ),
    timeoutFor(300),
  );
});
