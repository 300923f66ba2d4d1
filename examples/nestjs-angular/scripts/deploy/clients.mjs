// Clients of the relay without a page: `relayFeed$` with the default options, in this process.
import { connectionStatus, shareFeed } from 'rx-trade-feed/operators';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { createReceivedLog } from './received-log.mjs';

/** Connects to a relay. `stop()` disconnects. */
export const openClient = (url, name) => {
  const log = createReceivedLog();
  let state = 'connecting';
  const feed$ = relayFeed$(new URL('/feed', url)).pipe(shareFeed());
  const receiving = feed$.subscribe({
    next: (event) => {
      if (event.type === 'frame') log.frame(event.json().batch);
      else if (event.type === 'gap') log.gap();
    },
    error: ({ code }) => (state = `stopped: ${code}`),
    complete: () => (state = 'complete'),
  });
  receiving.add(
    feed$.pipe(connectionStatus()).subscribe({ next: (status) => (state = status.state), error: () => undefined }),
  );
  return { name, kind: 'client', log, state: async () => state, stop: () => receiving.unsubscribe() };
};
