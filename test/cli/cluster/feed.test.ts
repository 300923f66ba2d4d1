import { expect, it } from '@jest/globals';
import { commandFeed } from '../../../src/cli/cluster/feed.js';
import { readKey } from '../../../src/cluster/election/cluster-key.js';
import { subjectsOf } from '../../../src/cluster/subjects.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { describeServer } from '../../cluster/support/real-server.js';
import { waitFor } from '../../support/wait-for.js';
import { fakeContext } from '../support/fake-context.js';

describeServer('redis', ({ broker, connect }) => {
  it('carries the feed of a command, which gives the ownership away before it ends', async () => {
    const service = await startTradeFeedService();
    const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
    const env = {
      TRADE_FEED_BASE_URL: service.baseUrl,
      TRADE_FEED_API_KEY: apiKey,
      TRADE_FEED_CLUSTER: `redis://127.0.0.1:${broker().port}`,
    };
    const engine = await connect();
    const keyOf = async (account: string) => {
      const stored = await engine.read(subjectsOf(account).key);
      return stored && readKey(stored.value);
    };
    for (const [options, account] of [
      [{}, 'main'],
      [{ account: 'other', replica: 'two' }, 'other'],
    ] as const) {
      const { events$, close } = await commandFeed('market', options, fakeContext({ env }));
      const texts: string[] = [];
      let isOpen = false;
      const subscription = events$.subscribe((event) => {
        if (event.type === 'opened') isOpen = true;
        if (event.type === 'frame') texts.push(event.text());
      });
      await waitFor(() => isOpen);
      service.push('market', account);
      await waitFor(() => texts.length === 1);
      expect(texts).toEqual([account]);
      subscription.unsubscribe();
      expect(await keyOf(account)).toMatchObject({ phase: 'open' });
      await close();
      expect(await keyOf(account)).toMatchObject({ phase: 'free', owner: '' });
    }
    await service.shutdown();
  });
});
