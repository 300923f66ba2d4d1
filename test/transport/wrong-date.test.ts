import { describe, expect, it } from '@jest/globals';
import { type FeedEvent, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { optionsFor, until } from '../support/feed.js';
import {
  accept,
  type HandshakeStep,
  issue,
  refuseHandshake,
  startWire,
  text,
  type TicketStep,
} from '../support/wire.js';

/** Issues a ticket with a lifetime of one minute, through a proxy whose `Date` is this far ahead. */
const issueWithDateAhead =
  (aheadMs: number): TicketStep =>
  (response, wire, n) => {
    // A `Date` header has whole seconds.
    const now = Math.floor(Date.now() / 1_000) * 1_000;
    const expires_at = new Date(now + 60_000).toISOString();
    issue({ expires_at }, { date: new Date(now + aheadMs).toUTCString() })(response, wire, n);
  };
/** Issues a ticket that expires too soon for any handshake. */
const issueShort =
  (ms: number): TicketStep =>
  (response, wire, n) => {
    const expires_at = `2031-01-01T00:00:00.${String(ms).padStart(3, '0')}Z`;
    issue({ expires_at }, { date: 'Wed, 01 Jan 2031 00:00:00 GMT' })(response, wire, n);
  };
const slowly =
  (ms: number, step: HandshakeStep): HandshakeStep =>
  (peer, wire, n) =>
    void setTimeout(step, ms, peer, wire, n);

const names = (events: readonly FeedEvent[]): string[] =>
  events.flatMap((event) => {
    // A worker may send watermarks at any time.
    if (event.type === 'watermark') return [];
    return [event.type === 'disconnected' ? event.failure.code : event.type];
  });
const untilFrame = (options: TradeFeedOptions) =>
  until(tradeFeedEvents$('market', options), ({ type }) => type === 'frame');

const opened = ['ticket-requested', 'ticket-issued', 'opened', 'frame'];
const expired = ['ticket-requested', 'ticket-issued', 'ticket-expired', 'reconnecting'];

describe('a wrong `Date` from a proxy', () => {
  it.each([
    [60_000, 'main'],
    [61_000, 'worker'],
    [3_600_000, 'main'],
    [10 ** 12, 'main'],
  ] as const)(
    'is ignored if it leaves the ticket no lifetime (%i ms ahead, received in %s): the service decides',
    async (aheadMs, receiveIn) => {
      await using wire = await startWire({ ticket: [issueWithDateAhead(aheadMs)], handshake: [accept(text('a'))] });
      const events = await untilFrame(optionsFor(wire, { receiveIn }));
      expect(names(events)).toEqual(opened);
      expect(wire.tickets).toHaveLength(1);
    },
  );

  it('is ignored in the second attempt in a row if it leaves the ticket too little time', async () => {
    const handshake = slowly(150, accept(text('a')));
    await using wire = await startWire({ ticket: [issueShort(50)], handshake: [handshake] });
    const events = await untilFrame(optionsFor(wire));
    expect(names(events)).toEqual([...expired, ...opened]);
    expect(wire.tickets).toHaveLength(2);
  });

  it('is used again after any other failure', async () => {
    const answers: HandshakeStep[] = [() => undefined, refuseHandshake(503), () => undefined, accept(text('a'))];
    // On a slow machine the ticket may expire before the handshake starts, so look at its lifetime.
    const handshake: HandshakeStep = (peer, wire, n) => answers[wire.tickets.length - 1]?.(peer, wire, n);
    await using wire = await startWire({ ticket: [issueShort(50)], handshake: [handshake] });
    const events = await untilFrame(optionsFor(wire));
    const full = expired.map((name) => (name === 'ticket-expired' ? 'capacity-full' : name));
    expect(names(events)).toEqual([...expired, ...full, ...expired, ...opened]);
  });

  it("doesn't make a handshake endless: handshakeTimeoutMs still applies", async () => {
    await using wire = await startWire({ ticket: [issueShort(50)], handshake: [() => undefined] });
    const events = await until(
      tradeFeedEvents$('market', optionsFor(wire, { handshakeTimeoutMs: 200 })),
      (event) => event.type === 'disconnected' && event.failure.code === 'handshake-unreachable',
    );
    expect(names(events)).toEqual([...expired, 'ticket-requested', 'ticket-issued', 'handshake-unreachable']);
  });
});
