import { describe, expect, it } from '@jest/globals';
import { createFeedRun, type FeedRun } from '../../src/cluster/feed-run.js';
import type { Input } from '../../src/cluster/election/election.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { resolveTicketOptions } from '../../src/options.js';
import { tradeFeed$ } from '../../src/index.js';
import { startTradeFeedService } from '../../src/testing/index.js';
import { waitFor } from '../support/wait-for.js';

/** Starts a service, and a run that records what it reports. Each handshake is allowed at once. */
const startRun = async (onInput: (input: Input, run: FeedRun) => void = () => undefined) => {
  const service = await startTradeFeedService();
  const account = service.createAccount({ plan: 'developer' });
  const options = { baseUrl: service.baseUrl, apiKey: account.createApiKey(), backoff: { initialDelayMs: 1 } };
  const inputs: Input[] = [];
  const events: LifecycleEvent[] = [];
  const texts: string[] = [];
  const failures: unknown[] = [];
  const run = createFeedRun('market', resolveTicketOptions(options), 'a test', {
    input: (each) => {
      inputs.push(each);
      if (each.type === 'handshake') run.allow();
      onInput(each, run);
    },
    frame: (frame) => texts.push(frame.text()),
    event: (event) => events.push(event),
    failed: (error) => failures.push(error),
  });
  const typesOf = (list: readonly { readonly type: string }[]) => list.map(({ type }) => type);
  return {
    ...{ service, account, options, run, inputs, events, texts, failures },
    opened: (count = 1) => waitFor(() => typesOf(events).filter((type) => type === 'opened').length === count),
    inputTypes: () => typesOf(inputs),
    eventTypes: () => typesOf(events),
    [Symbol.asyncDispose]: async () => {
      run.close();
      await service.shutdown();
    },
  };
};

describe('the connection of an owner', () => {
  it('asks before each handshake, and reports the end of each connection', async () => {
    await using test = await startRun();
    test.run.open();
    await test.opened();
    test.account.expireAccess();
    await test.opened(2);
    expect(test.inputTypes()).toEqual(['handshake', 'opened', 'disconnected', 'handshake', 'opened']);
    expect(test.inputs[2]).toEqual({ type: 'disconnected', isUnanswered: false });
    await waitFor(() => test.eventTypes().includes('gap'));
  });

  it('reports whether a handshake had an answer', async () => {
    await using test = await startRun();
    test.service.setCapacity(0);
    test.run.open();
    await waitFor(() => test.inputTypes().includes('disconnected'));
    expect(test.inputs[1]).toEqual({ type: 'disconnected', isUnanswered: false });
    test.service.setCapacity(1);
    await test.opened();
  });

  it('sends no handshake before it is allowed, or after it was closed', async () => {
    await using test = await startRun((input, run) => {
      if (input.type === 'handshake') run.close();
    });
    // Nothing waits yet.
    test.run.allow();
    test.run.open();
    await waitFor(() => test.inputs.length > 0);
    test.run.allow();
    expect(test.inputTypes()).toEqual(['handshake']);
  });

  it('does not report the end of a connection that the election has closed meanwhile', async () => {
    await using test = await startRun((input, run) => {
      if (input.type === 'disconnected') run.close();
    });
    test.run.open();
    await test.opened();
    test.account.expireAccess();
    await waitFor(() => test.inputTypes().includes('disconnected'));
    expect(test.eventTypes()).not.toContain('disconnected');
  });

  it('reports a connection that was replaced, and the gap when it opens again', async () => {
    await using test = await startRun();
    test.run.open();
    await test.opened();
    const foreign = tradeFeed$('market', test.options).subscribe();
    await waitFor(() => test.inputTypes().includes('failed'));
    foreign.unsubscribe();
    expect(test.inputs.at(-1)).toEqual({ type: 'failed', isReplaced: true });
    expect(test.failures).toEqual([]);
    test.run.open();
    await test.opened(2);
    expect(test.events.at(-1)).toMatchObject({ type: 'gap', failure: { code: 'connection-replaced' } });
    test.service.push('market', 'after');
    await waitFor(() => test.texts.length === 1);
  });

  it('reports a failure that no reconnect can help', async () => {
    await using test = await startRun();
    test.account.revokeAccess();
    test.run.open();
    await waitFor(() => test.inputs.length > 0);
    expect(test.inputs).toEqual([{ type: 'failed', isReplaced: false }]);
    expect(test.failures).toMatchObject([{ code: 'not-entitled' }]);
    expect(test.eventTypes()).toEqual(['ticket-requested']);
  });
});
