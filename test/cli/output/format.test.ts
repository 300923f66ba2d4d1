import { describe, expect, test } from '@jest/globals';
import { ended, type Happening } from '../../../src/cli/follow/happening.js';
import { jsonFormat, plainFormat, shownFormat } from '../../../src/cli/output/format.js';
import { createTradeFeedError } from '../../../src/index.js';
import { ending, expired, frameAt, gap, start } from '../support/events.js';

const text = frameAt(5, '{"名":"a\nb\u2028\x1b"}');
const binary = frameAt(6, '\x00\xff', { isBinary: true, connection: 2 });
const others: readonly Happening[] = [
  { type: 'tick', at: start },
  ...ending(0, expired, 0),
  ended({ kind: 'failed', error: new Error('x') }),
];

describe('the plain format', () => {
  test('is a text payload byte for byte and a newline, a binary one in base64', () => {
    expect(plainFormat(text)).toStrictEqual(Buffer.concat([text.data, Buffer.from('\n')]));
    expect(plainFormat(binary)).toBe(`${binary.data.toString('base64')}\n`);
  });

  test('is of frames alone', () => {
    expect(others.map(plainFormat)).toStrictEqual(others.map(() => undefined));
    expect(others.map(shownFormat)).toStrictEqual(others.map(() => undefined));
  });

  test('cannot steer a terminal', () => {
    expect(shownFormat(text)).toBe('{"名":"a␊b�␛"}\n');
    expect(shownFormat(binary)).toBe(plainFormat(binary));
  });
});

describe('the JSON format', () => {
  const parsed = (happening: Happening): unknown => {
    const line = jsonFormat(happening);
    if (line === undefined) return undefined;
    expect(line).toMatch(/^[^\n]*\n$/);
    return JSON.parse(String(line));
  };

  test('is a frame with its metadata', () => {
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

  test('is an event with its failure as plain data', () => {
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

  test('is the failure that stopped the feed, and no other ending', () => {
    const error = createTradeFeedError({ stage: 'ticket', status: 401 });
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
