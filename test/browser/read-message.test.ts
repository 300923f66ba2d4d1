import { describe, expect, it } from '@jest/globals';
import { readMessage } from '../../src/browser/read-message.js';
import { lost, opened, requested } from '../operators/stream.js';

const message = (type: string, ...lines: readonly string[]) => ({ type, id: 'e.1.1.1', lines });
const lines = [requested(1), opened(2)].map((event) => JSON.stringify(event));

describe('readMessage', () => {
  it('reads the events of a message without a type', () => {
    expect(readMessage(message('', ...lines), 0)).toEqual({ events: [requested(1), opened(2)] });
    expect(readMessage(message('', ...lines), 5)).toEqual({ events: [requested(6), opened(7)] });
  });

  it('leaves out what it does not know', () => {
    expect(readMessage(message('', '{"type":"new"}', lines[1]!), 0)).toEqual({ events: [opened(2)] });
    expect(readMessage(message('new', 'whatever'), 0)).toEqual({});
    expect(readMessage(message('heartbeat', ''), 0)).toEqual({});
  });

  it('reads the greeting', () => {
    expect(readMessage(message('hello', '{"at":5,"more":1}'), 0)).toEqual({ relayAt: 5 });
  });

  it('reads a stop, which is one whatever its verdict', () => {
    const failure = lost(5, { reason: 'x' }).with({ previous: lost(3) });
    const { stop } = readMessage(message('stop', JSON.stringify(failure)), 100);
    expect(stop).toMatchObject({
      ...{ code: failure.code, verdict: 'stop', advice: failure.advice, message: failure.message },
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
    message('stop', '{}'),
    message('stop', 'null'),
    message('stop', 'garbage'),
  ])('throws for what no relay sends: $type $lines', (sent) => {
    expect(() => readMessage(sent, 0)).toThrow();
  });
});
