import { defer, finalize, first, fromEvent, map, type Observable, share } from 'rxjs';
import { fromPosted, type TabMessage, toPosted } from './tab-message.js';

/** The channel between the tabs with the same name. */
export interface TabChannel {
  /** Emits the messages of the other tabs, from now on. */
  readonly messages$: Observable<TabMessage>;
  /** Posts a message to all other tabs. */
  readonly post: (message: TabMessage) => void;
  /** Emits once, after all messages that were posted before the subscription. */
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
      // A `BroadcastChannel` does not receive the messages that it posts, so a second one posts the mark.
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
