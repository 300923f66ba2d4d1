import { describe, expect, it } from '@jest/globals';
import { readMessage } from '../../src/browser/read-message.js';
import { copyFailure, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { lost, opened, requested } from '../operators/stream.js';

const message = (type: string, ...lines: readonly string[]) => ({ event: type, id: 'e.1.1.1', data: lines });
const lines = [requested(1), opened(2)].map((event) => JSON.stringify(event));

describe('readMessage', () => {
  it('reads the events of a message without a type', () => {
    expect(readMessage(message('', ...lines), 0)).toEqual({ events: [requested(1), opened(2)] });
    expect(readMessage(message('', ...lines), 5)).toEqual({ events: [requested(6), opened(7)] });
  });

  it('ignores unknown events and messages', () => {
    expect(readMessage(message('', '{"type":"new"}', lines[1]!), 0)).toEqual({ events: [opened(2)] });
    expect(readMessage(message('new', 'whatever'), 0)).toEqual({});
    expect(readMessage(message('heartbeat', ''), 0)).toEqual({});
  });

  it('reads hello', () => {
    expect(readMessage(message('hello', '{"at":5,"more":1}'), 0)).toEqual({ relayAt: 5 });
  });

  it.each(['stop', 'renew', 'wait', 'backoff'] as const)('reads the failure of connect-again: %s', (verdict) => {
    const failure = copyFailure(lost(5, { reason: 'x' }), { previous: lost(3), verdict });
    const { ending } = readMessage(message('connect-again', JSON.stringify(failure)), 100);
    expect(ending).toBeInstanceOf(TradeFeedError);
    expect(ending).toMatchObject({
      ...{ code: failure.code, verdict, advice: failure.advice, message: failure.message },
      ...{ endedAt: 105, previous: { endedAt: 103, code: failure.code } },
    });
  });

  it.each([
    message('', lines[0]!, 'garbage'),
    message('', '', ''),
    message('hello', 'garbage'),
    message('hello', '{}'),
    message('hello', '{"at":"5"}'),
    message('hello', 'null'),
    message('connect-again', '{}'),
    message('connect-again', 'null'),
    message('connect-again', 'garbage'),
    message('connect-again', JSON.stringify({ ...lost(5), verdict: 'hope' })),
  ])('throws for an invalid message: $event $data', (sent) => {
    expect(() => readMessage(sent, 0)).toThrow();
  });
});
