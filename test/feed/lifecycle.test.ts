import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { lastValueFrom, retryWhen, throwError } from 'rxjs';
import { createLifecycle, reconnects } from '../../src/feed/lifecycle.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { opened, requested } from '../operators/stream.js';

describe('lifecycle', () => {
  const failure = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown', endedAt: 5 });

  const again = { type: 'disconnected', at: 10, failure: copyFailure(failure, { endedAt: 9 }) } as const;
  const started = () => {
    const [delivered, observed]: [LifecycleEvent[], LifecycleEvent[]] = [[], []];
    jest.spyOn(Date, 'now').mockReturnValueOnce(7).mockReturnValue(8);
    const lifecycle = createLifecycle(
      (event) => delivered.push(event),
      (event) => observed.push(event),
    );
    return { delivered, observed, lifecycle };
  };

  afterEach(() => void jest.restoreAllMocks());

  it('needs no observer', () => {
    const delivered: LifecycleEvent[] = [];
    const lifecycle = createLifecycle((event) => delivered.push(event));
    lifecycle.emit(opened(7));
    expect(delivered).toMatchObject([{ type: 'opened' }]);
  });

  describe('a lifecycle', () => {
    it("gives observers the subscriber's own objects, including a gap for each outage and `stopped`", () => {
      const { delivered, observed, lifecycle } = started();
      const end = { type: 'disconnected', at: 5, failure } as const;
      for (const event of [requested(0), opened(1), end, requested(5), opened(6), again, opened(12)])
        lifecycle.emit(event);
      lifecycle.stop(failure);
      expect(delivered).toEqual([
        ...[requested(0), opened(1), end, requested(5), opened(6)],
        { type: 'gap', from: 5, to: 6, durationMs: 1, failure },
        ...[again, opened(12)],
        { type: 'gap', from: 9, to: 12, durationMs: 3, failure: again.failure },
        { type: 'stopped', at: 7, failure },
      ]);
      expect(observed).toHaveLength(delivered.length);
      observed.forEach((event, n) => expect(event).toBe(delivered[n]));
    });

    it("shows observers an exception of the user, but doesn't emit it as stopped", () => {
      const { delivered, observed, lifecycle } = started();
      const exception = new Error('mine');
      lifecycle.stop(exception);
      expect(delivered).toEqual([]);
      expect(observed).toMatchObject([
        { type: 'stopped', at: 7, failure: { code: 'relay-source-failed', cause: exception } },
      ]);
    });

    it('emits disconnected with the failure, reconnecting with the delay, and at last stopped', async () => {
      const { delivered, lifecycle } = started();
      const policy = { jitter: 'none', initialDelayMs: 1, maxAttempts: 1 } as const;
      const feed$ = throwError(() => failure).pipe(retryWhen(reconnects(policy, lifecycle)));
      const error: unknown = await lastValueFrom(feed$).catch((thrown: unknown) => thrown);
      expect(delivered).toEqual([
        { type: 'disconnected', at: 7, failure },
        { type: 'reconnecting', at: 8, delayMs: 1, attempt: 1, verdict: failure.verdict },
        { type: 'stopped', at: 8, failure: error },
      ]);
      expect(error).toMatchObject({ code: 'retries-exhausted' });
    });
  });
});
