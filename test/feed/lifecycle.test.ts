import { describe, expect, it } from '@jest/globals';
import { VirtualTimeScheduler } from 'rxjs';
import { createLifecycle } from '../../src/feed/lifecycle.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { disconnected, gapOf, issued, opened, opening, stopped, watermark } from '../operators/stream.js';

/** Runs a lifecycle in virtual time. `frame`: when the first frame of a connection arrives. */
const run = (steps: Readonly<Record<number, LifecycleEvent | 'frame' | 'end'>>, hasTimer = true) => {
  const scheduler = new VirtualTimeScheduler();
  const delivered: (readonly [at: number, event: LifecycleEvent])[] = [];
  const observed: LifecycleEvent[] = [];
  const lifecycle = createLifecycle((event) => delivered.push([scheduler.now(), event]), {
    observe: (event) => observed.push(event),
    scheduler: hasTimer ? scheduler : undefined,
  });
  for (const [at, step] of Object.entries(steps))
    scheduler.schedule(() => {
      if (step === 'end') lifecycle.end();
      else if (step === 'frame') lifecycle.firstFrame(Number(at));
      else lifecycle.emit(step);
    }, Number(at));
  scheduler.flush();
  expect(observed).toEqual(delivered.map(([, event]) => event));
  const gaps = delivered.flatMap(([at, event]) => (event.type === 'gap' ? [`${event.from}-${event.to} at ${at}`] : []));
  return { delivered, gaps, now: scheduler.now() };
};

const lost = disconnected(5);

describe('the gap of an outage', () => {
  it.each([
    ['comes with the first frame, and ends at `opened` if that frame came early', { 300: 'frame' }, ['5-110 at 300']],
    ['comes with the first frame, and ends there if that frame could be delayed', { 600: 'frame' }, ['5-600 at 600']],
    ['comes after 500 ms without a frame', {}, ['5-610 at 611']],
    ['comes once', { 300: 'frame', 700: opening(700, 3) }, ['5-110 at 300']],
    ['waits for the next connection, if this one ends', { 200: disconnected(200), 900: 'end' }, []],
    ['does not come after the end of the subscription', { 200: 'end' }, []],
  ] as const)('%s', (_title, steps, expected) => {
    const connected = { 1: opened(1), 5: lost, 100: issued(100), 110: opening(110, 2) };
    expect(run({ ...connected, ...steps }).gaps).toEqual(expected);
  });

  it('never comes before the first connection, and then there is no timer left', () => {
    const { gaps, now } = run({ 100: issued(100), 110: opening(110), 200: 'frame' });
    expect([gaps, now]).toEqual([[], 200]);
    expect(run({ 100: issued(100), 110: opening(110) }).gaps).toEqual([]);
  });

  it('comes right after `opened` if nothing is delayed', () => {
    const again = opened(110, 2);
    const { delivered } = run({ 5: lost, 110: again, 120: 'frame' });
    expect(delivered.map(([, event]) => event)).toEqual([lost, again, gapOf(5, 110, lost.failure)]);
  });

  it('comes before the first frame and again at the end of `deliveryDelayMs`, whatever comes', () => {
    const again = { ...opening(110, 2), completeFrom: 2_110 };
    expect(run({ 5: lost, 110: again, 120: 'frame' }).gaps).toEqual(['5-120 at 120', '120-2110 at 2111']);
    expect(run({ 5: lost, 110: again }).gaps).toEqual(['5-2110 at 2111']);
    expect(run({ 5: lost, 110: again, 120: 'frame', 500: disconnected(500) }).gaps).toEqual(['5-120 at 120']);
  });

  it.each([
    ['a watermark of that time', watermark(620)],
    ['the event that ends a quiet connection', stopped(2_000)],
  ])('comes before %s, where no timer tells the time', (_what, event) => {
    const steps = { 5: lost, 100: issued(100), 110: opening(110, 2), 400: watermark(400), [event.at]: event };
    const { delivered, gaps } = run(steps, false);
    expect(gaps).toEqual([`5-610 at ${event.at}`]);
    expect(delivered.slice(-2).map(([, { type }]) => type)).toEqual(['gap', event.type]);
  });
});
