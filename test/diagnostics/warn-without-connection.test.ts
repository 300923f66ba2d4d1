import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Observable } from 'rxjs';
import { tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { warnWithoutConnection } from '../../src/diagnostics/warn-without-connection.js';
import { disconnected, opened, requested } from '../operators/stream.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { accept, close, issue, refuse, refuseHandshake, startWire, text } from '../support/wire.js';
import { waitFor } from '../support/wait-for.js';

const origin = {
  feed: 'market',
  baseUrl: 'https://feed.example.com',
  where: "tradeFeed$('market') at app.js:3:1",
} as const;
let emitWarning: jest.SpiedFunction<(warning: string, options: NodeJS.EmitWarningOptions) => void>;
beforeEach(() => {
  emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
});
afterEach(() => emitWarning.mockRestore());

describe('warnWithoutConnection', () => {
  const failed = disconnected(1, { stage: 'ticket', status: 503, closeCode: undefined });

  it('warns after the third failed attempt, once, with the code, the advice and the debug switch', () => {
    const warn = warnWithoutConnection(origin);
    for (const event of [requested(1), failed, requested(2), failed, requested(3)]) warn(event);
    expect(emitWarning).not.toHaveBeenCalled();
    for (const event of [failed, failed, failed]) warn(event);
    expect(emitWarning).toHaveBeenCalledTimes(1);
    expect(emitWarning.mock.calls[0]).toEqual([
      "No connection to https://feed.example.com has opened after 3 attempts of tradeFeed$('market') at app.js:3:1. " +
        `credential-service-unavailable: ${failed.failure.message} The feed continues to try. ` +
        'NODE_DEBUG=rx-trade-feed prints each event; the option `warnings: false` turns this warning off.',
      { type: 'TradeFeedWarning', code: 'credential-service-unavailable' },
    ]);
    expect(emitWarning.mock.calls[0]?.[0]).toContain(failed.failure.advice);
  });

  it('does not warn after a connection has opened', () => {
    const warn = warnWithoutConnection(origin);
    for (const event of [failed, failed, opened(1), failed, failed, failed, failed]) warn(event);
    expect(emitWarning).not.toHaveBeenCalled();
  });

  it('is one line, also if the failure contains line breaks', () => {
    const warn = warnWithoutConnection(origin);
    const hostile = disconnected(1, { stage: 'ticket', status: 503, closeCode: undefined, detail: 'a\nb\u001b[2J' });
    for (let n = 0; n < 3; n += 1) warn(hostile);
    expect(emitWarning.mock.calls[0]?.[0]).not.toMatch(/[\n\u001b]/);
  });
});

describe('a feed without a connection', () => {
  const unavailable = { ticket: [refuse(503)] };
  const attempts = (wire: { readonly tickets: readonly unknown[] }, count: number) =>
    waitFor(() => wire.tickets.length >= count);

  it.each<[string, TradeFeedOptions]>([
    ['on the main thread', {}],
    ['in a worker', { receiveIn: 'worker' }],
  ])('warns once for each subscription of tradeFeed$, %s', async (_name, options) => {
    await using wire = await startWire(unavailable);
    const feed$ = tradeFeed$('market', optionsFor(wire, options));
    for (const warnings of [1, 2]) {
      const subscription = feed$.subscribe();
      await waitFor(() => emitWarning.mock.calls.length >= warnings);
      await attempts(wire, wire.tickets.length + 3);
      subscription.unsubscribe();
      expect(emitWarning).toHaveBeenCalledTimes(warnings);
    }
    expect(JSON.stringify(emitWarning.mock.calls)).not.toContain(plantedKey);
    expect(emitWarning.mock.calls[0]?.[0]).toMatch(
      /tradeFeed\$\('market'\) at .*warn-without-connection\.test\.ts:\d+/,
    );
  });

  it.each<[string, (wire: { readonly baseUrl: string }) => Observable<unknown>]>([
    ['with `warnings: false`', (wire) => tradeFeed$('market', optionsFor(wire, { warnings: false }))],
    [
      'of tradeFeedEvents$, whose subscriber receives the events',
      (wire) => tradeFeedEvents$('market', optionsFor(wire)),
    ],
  ])('does not warn %s', async (_name, feedOf) => {
    await using wire = await startWire(unavailable);
    const subscription = feedOf(wire).subscribe();
    await attempts(wire, 6);
    subscription.unsubscribe();
    expect(emitWarning).not.toHaveBeenCalled();
  });

  it('that connects in the third attempt does not warn', async () => {
    const ticket = [refuse(503), refuse(503), issue()];
    await using wire = await startWire({ ticket, handshake: [accept(text('a'), close(1001)), refuseHandshake(503)] });
    const subscription = tradeFeed$('market', optionsFor(wire)).subscribe();
    await waitFor(() => wire.handshakes.length >= 6);
    subscription.unsubscribe();
    expect(emitWarning).not.toHaveBeenCalled();
  });
});
