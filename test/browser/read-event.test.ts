import { describe, expect, it } from '@jest/globals';
import { readEvent } from '../../src/browser/read-event.js';
import { frameLine } from '../../src/operators/node/recording-line.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { TradeFeedError } from '../../src/protocol/failure.js';
import { disconnected, gapOf, issued, lost, opened, reconnecting, requested } from '../operators/stream.js';
import { essence, frame } from '../relay/support.js';

const previous = lost(400);
const failure = lost(500).with({ previous });
const events: readonly LifecycleEvent[] = [
  requested(1_000),
  issued(1_001),
  opened(1_002, 3),
  { ...disconnected(1_003), failure },
  reconnecting(1_004, 20, 2),
  { ...gapOf(500, 1_005, failure), missed: 7 },
];

describe('readEvent', () => {
  it.each(events)('gives $type as it was', (event) => {
    const read = readEvent(JSON.stringify(event), 0) as LifecycleEvent;
    expect(JSON.parse(JSON.stringify(read))).toEqual(JSON.parse(JSON.stringify(event)));
    if ('failure' in read) expect(read.failure).toBeInstanceOf(TradeFeedError);
  });

  it('gives a frame as it was', () => {
    const sent = frame('é', 1_000, 2);
    expect(essence(readEvent(frameLine(sent), 0) as never)).toEqual(essence(sent));
  });

  it('puts every time right: those of events, of frames, of failures and of the failures before', () => {
    const shift = (event: LifecycleEvent) => readEvent(JSON.stringify(event), 600_000);
    expect(events.slice(0, 3).map(shift)).toEqual([requested(601_000), issued(601_001), opened(601_002, 3)]);
    expect(shift(events[4]!)).toEqual(reconnecting(601_004, 20, 2));
    const put = { endedAt: 600_500, previous: { endedAt: 600_400 } };
    expect(shift(events[3]!)).toMatchObject({ at: 601_003, failure: put });
    expect(shift(events[5]!)).toMatchObject({ from: 600_500, to: 601_005, durationMs: 505, failure: put });
    expect(readEvent(frameLine(frame('a', 1_000)), -400)).toMatchObject({ receivedAt: 600 });
  });

  it('gives a value with its time put right, whatever it is', () => {
    for (const value of [{ n: 1, at: 5 }, [1], 'text', null, 0, false])
      expect(readEvent(JSON.stringify({ type: 'value', at: 1_000, value }), 500)).toEqual({
        type: 'value',
        at: 1_500,
        value,
      });
  });

  it.each([
    '{"type":"new-in-some-version","at":1}',
    '{"type":"__proto__"}',
    '{"type":"constructor"}',
    '{}',
    '[]',
    '"text"',
    '5',
  ])('knows no such type: %s', (line) => {
    expect(readEvent(line, 0)).toBeUndefined();
  });

  const lineOf = (fields: Readonly<Record<string, unknown>>): string =>
    JSON.stringify({ type: 'gap', from: 1, to: 2, durationMs: 1, failure, ...fields });
  it.each([
    ['no JSON', 'data'],
    ['nothing', ''],
    ['null', 'null'],
    ['a gap without its failure', lineOf({ failure: undefined })],
    ['a gap without a time', lineOf({ to: undefined })],
    ['a gap with a text as its time', lineOf({ from: '1' })],
    ['a gap with half a failure', lineOf({ failure: { code: 'x' } })],
    ['a gap with a text as its failure', lineOf({ failure: 'x' })],
    ['an end without its failure', '{"type":"disconnected","at":1}'],
    ['a value without its time', '{"type":"value","value":1}'],
    ['a value without the value', '{"type":"value","at":1}'],
    ['an opening without its time', '{"type":"opened"}'],
    ['a frame without its time', frameLine(frame('a')).replace('receivedAt', 'x')],
    ['a frame with data that is no base64', frameLine(frame('%')).replace('utf8', 'base64')],
  ])('throws for %s', (_what, line) => {
    expect(() => readEvent(line, 0)).toThrow();
  });
});
