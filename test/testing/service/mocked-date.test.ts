import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type FeedEvent, tradeFeedEvents$ } from '../../../src/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../../src/testing/index.js';
import { until } from '../../support/feed.js';
import { type BareTicket, postTicket, refusedHandshake, takeTicket } from '../bare-client.js';

/** Mocks only `Date`, as tests of dates do. Timers run in real time. */
const mockDate = (now: number): void => {
  jest.useFakeTimers({
    now,
    doNotFake: [
      ...(['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const),
      ...(['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] as const),
    ],
  });
};

const moments = [
  ['long ago', '2001-02-03T04:05:06.789Z'],
  ['an hour ago', new Date(Date.now() - 3_600_000).toISOString()],
  ['in a minute', new Date(Date.now() + 60_000).toISOString()],
  ['in the far future', '2099-12-31T23:59:59.999Z'],
] as const;

describe.each(moments)('with a mocked Date, %s', (_when, iso) => {
  const now = Date.parse(iso);
  let service: TradeFeedService;
  let key: string;
  beforeEach(async () => {
    mockDate(now);
    service = await startTradeFeedService();
    key = service.createAccount({ plan: 'developer' }).createApiKey();
  });
  afterEach(async () => {
    await service.shutdown();
    jest.useRealTimers();
  });

  it('tickets are valid for a minute, by the Date of the answer and by the Date of the test', async () => {
    const { headers, body } = await postTicket(service, key);
    expect(Date.parse((body as BareTicket).expires_at)).toBe(now + 60_000);
    expect(headers['date']).toBe(new Date(now).toUTCString());
  });

  it('has the same Date in the refusal of a ticket and of a handshake', async () => {
    const ticket = await takeTicket(service, key);
    service.revokeTicket(ticket.ticket);
    for (const { status, headers } of [await postTicket(service, 'wrong'), await refusedHandshake(ticket)]) {
      expect(status).toBe(401);
      expect(headers['date']).toBe(new Date(now).toUTCString());
    }
  });

  it.each(['main', 'worker'] as const)('sends frames to a client in %s, also after a reconnect', async (receiveIn) => {
    const account = service.createAccount({ plan: 'developer' });
    const options = {
      baseUrl: service.baseUrl,
      apiKey: account.createApiKey(),
      receiveIn,
      backoff: { initialDelayMs: 1 },
    };
    const pushed = service.events$.subscribe(({ type }) => {
      if (type === 'handshake-accepted') service.push('market', 'a frame');
    });
    let frames = 0;
    const events = await until(tradeFeedEvents$('market', options), (event: FeedEvent) => {
      if (event.type !== 'frame') return false;
      frames += 1;
      if (frames === 1) account.expireAccess();
      return frames === 2;
    });
    pushed.unsubscribe();
    expect(events.flatMap((event) => (event.type === 'disconnected' ? [event.failure.code] : []))).toEqual([
      'access-expired',
    ]);
    expect(events.flatMap((event) => (event.type === 'ticket-issued' ? [event.expiresAt] : []))).toEqual([
      new Date(now + 60_000).toISOString(),
      new Date(now + 60_000).toISOString(),
    ]);
  });
});
