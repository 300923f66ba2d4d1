import { describe, expect, it } from '@jest/globals';
import { type CliEvent, ended } from '../../../src/cli/follow/event.js';
import { jsonFormat, plainFormat, terminalFormat } from '../../../src/cli/output/format.js';
import { tradeFeedError } from '../../../src/index.js';
import { ending, expired, frameAt, gap, start } from '../support/events.js';

const text = frameAt(5, '{"名":"a\nb\u2028\x1b"}');
const binary = frameAt(6, '\x00\xff', { isBinary: true, connection: 2 });
const others: readonly CliEvent[] = [
  { type: 'tick', at: start },
  ...ending(0, expired, 0),
  ended({ kind: 'failed', error: new Error('x') }),
];

describe('the plain format', () => {
  it('is a text payload unchanged with a newline, or a binary payload in base64', () => {
    expect(plainFormat(text)).toStrictEqual(Buffer.concat([text.data, Buffer.from('\n')]));
    expect(plainFormat(binary)).toBe(`${binary.data.toString('base64')}\n`);
  });

  it('has lines only for frames', () => {
    expect(others.map(plainFormat)).toStrictEqual(others.map(() => undefined));
    expect(others.map(terminalFormat)).toStrictEqual(others.map(() => undefined));
  });

  it('cannot control a terminal', () => {
    expect(terminalFormat(text)).toBe('{"名":"a␊b�␛"}\n');
    expect(terminalFormat(binary)).toBe(plainFormat(binary));
  });
});

describe('the JSON format', () => {
  const parsed = (event: CliEvent): unknown => {
    const line = jsonFormat(event);
    if (line === undefined) return undefined;
    expect(line).toMatch(/^[^\n]*\n$/);
    return JSON.parse(String(line));
  };

  it('is a frame with its metadata', () => {
    expect(parsed(text)).toStrictEqual({
      type: 'frame',
      feed: 'market',
      connection: 1,
      receivedAt: start + 5,
      isBinary: false,
      encoding: 'utf8',
      data: text.text(),
    });
    const record = parsed(binary) as { data: string };
    expect(record).toMatchObject({ isBinary: true, encoding: 'base64', connection: 2 });
    expect(Buffer.from(record.data, 'base64')).toStrictEqual(binary.data);
  });

  it('is an event with its failure as plain data', () => {
    expect(ending(7, expired, 300, 2).map(parsed)).toMatchObject([
      { type: 'disconnected', at: start + 7, failure: { code: 'access-expired', closeCode: 4003, stage: 'stream' } },
      { type: 'reconnecting', at: start + 7, delayMs: 300, attempt: 2, verdict: 'renew' },
    ]);
    expect(parsed(gap(1, 4, expired))).toMatchObject({
      type: 'gap',
      durationMs: 3,
      failure: { code: 'access-expired' },
    });
  });

  it('includes the failure that stopped the feed, and no other ending', () => {
    const error = tradeFeedError({ stage: 'ticket', status: 401 });
    expect(parsed(ended({ kind: 'failed', error }))).toMatchObject({
      type: 'stopped',
      failure: { code: 'invalid-api-key' },
    });
    expect(parsed(ended({ kind: 'failed', error: new Error('odd') }))).toMatchObject({
      failure: { message: 'Error: odd' },
    });
    expect(parsed(ended({ kind: 'time-up' }))).toBeUndefined();
    expect(parsed({ type: 'tick', at: start })).toBeUndefined();
  });
});
