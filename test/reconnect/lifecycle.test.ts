import { describe, expect, it } from '@jest/globals';
import { concat, defer, EMPTY, NEVER, of, tap, throwError } from 'rxjs';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { type Emit, reconnecting, withLifecycle } from '../../src/reconnect/lifecycle.js';

const failure = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' });
const watermark = (at: number): LifecycleEvent => ({ type: 'watermark', at });

const collect = (values$: Parameters<typeof withLifecycle<string>>[0]) => {
  const emitted: unknown[] = [];
  const subscription = withLifecycle(values$).subscribe({
    next: (value) => emitted.push(typeof value === 'string' ? value : value.type),
    error: (error: unknown) => emitted.push(error),
    complete: () => emitted.push('complete'),
  });
  return { emitted, subscription };
};

describe('withLifecycle', () => {
  it('emits values and events in order', () => {
    const { emitted, subscription } = collect((emit) =>
      concat(of('a', 'b').pipe(tap(() => emit(watermark(1)))), NEVER),
    );
    expect(emitted).toEqual(['watermark', 'a', 'watermark', 'b']);
    subscription.unsubscribe();
  });

  it('emits stopped before a failure of the feed', () => {
    expect(collect(() => throwError(() => failure)).emitted).toEqual(['stopped', failure]);
  });

  it('does not emit stopped before an exception of the user', () => {
    const exception = new Error('mine');
    expect(collect(() => throwError(() => exception)).emitted).toEqual([exception]);
  });

  it('completes with the feed', () => {
    expect(collect(() => EMPTY).emitted).toEqual(['complete']);
  });

  it('emits the events of each subscription separately', () => {
    let subscriptions = 0;
    const feed$ = withLifecycle((emit) =>
      defer(() => {
        subscriptions += 1;
        emit(watermark(subscriptions));
        return NEVER;
      }),
    );
    const seen: unknown[] = [];
    const running = [1, 2].map((n) => feed$.subscribe((event) => seen.push([n, event])));
    expect(seen).toEqual([
      [1, watermark(1)],
      [2, watermark(2)],
    ]);
    for (const subscription of running) subscription.unsubscribe();
  });
});

describe('reconnecting', () => {
  it('emits disconnected with the failure, then reconnecting with the wait', () => {
    const events: LifecycleEvent[] = [];
    const emit: Emit = (event) => void events.push(event);
    reconnecting(emit)({ failure, attempt: 2, delayMs: 30, floorMs: 0, afterStable: false });
    const at = expect.any(Number) as unknown as number;
    expect(events).toEqual([
      { type: 'disconnected', at, failure },
      { type: 'reconnecting', at, delayMs: 30, attempt: 2, verdict: failure.verdict },
    ]);
  });
});
