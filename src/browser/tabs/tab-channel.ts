import { defer, finalize, first, fromEvent, map, type Observable, share } from 'rxjs';
import { fromPosted, type TabMessage, toPosted } from './tab-message.js';

/** What the tabs of one name say to each other. */
export interface TabChannel {
  /** What the other tabs post from now on. */
  readonly messages$: Observable<TabMessage>;
  /** Posts to all other tabs. */
  readonly post: (message: TabMessage) => void;
  /** Emits once, after everything that was posted before it was subscribed to. */
  readonly caughtUp$: Observable<unknown>;
  readonly close: () => void;
}

/** Opens the channel of a name. */
export const openChannel = (name: string): TabChannel => {
  const channel = new BroadcastChannel(name);
  const messages$ = fromEvent(channel, 'message').pipe(
    map((event) => fromPosted((event as { readonly data?: unknown }).data)),
    share(),
  );
  return {
    messages$,
    caughtUp$: defer(() => {
      // A channel does not receive what it posts itself.
      const other = new BroadcastChannel(name);
      const tab = crypto.randomUUID();
      other.postMessage(toPosted({ type: 'mark', tab }));
      return messages$.pipe(
        first((message) => message.type === 'mark' && message.tab === tab),
        finalize(() => other.close()),
      );
    }),
    post: (message) => channel.postMessage(toPosted(message)),
    close: () => channel.close(),
  };
};
