// Runs the pins in Node, over a feed of the local service.
import * as rx from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';

/** Registers a test for each pin. @param rx9 - resolves with the module of RxJS 9 */
export const testPins = (test, pins, rx9, { receiveIn = 'main', ...options } = {}) => {
  for (const [title, pin] of Object.entries(pins)) {
    test(title, options, async (t) => {
      const { ColdObservable: Cold } = await rx9();
      const service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 100 }) } });
      t.after(() => service.shutdown());
      const account = service.createAccount({ plan: 'developer' });
      const settings = { baseUrl: service.baseUrl, apiKey: account.createApiKey(), warnings: false };
      await pin({
        ...{ Kind: globalThis.Observable, Cold, feed$: tradeFeed$('market', { ...settings, receiveIn }) },
        stop: () => rx.firstValueFrom(tradeFeed$('market', settings)),
        allow: () => undefined,
        reported: uncaught,
      });
    });
  }
};

/** Resolves with the name of the first uncaught error. Keeps the pins' errors from the test runner. */
const uncaught = () =>
  new Promise((done) => {
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => {
      if (error.message === 'mine') done(error.name);
      else for (const listener of listeners) listener(error);
    });
  });
