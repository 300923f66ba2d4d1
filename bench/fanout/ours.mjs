// The relay of this library.
import { Subject } from 'rxjs';
import { Frame } from '../../dist/index.js';
import { createRelay, relayHandler } from '../../dist/relay/index.js';

export const start = () => {
  const events = new Subject();
  const relay = createRelay(events, { maxClients: 10_000 });
  const handle = relayHandler(relay, { authorize: () => true });
  relay.hold();
  let isOpen = false;
  return {
    relay,
    handle,
    emit: (bytes) => {
      if (!isOpen && events.observed) {
        isOpen = true;
        events.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
      }
      events.next(new Frame('market', bytes, false, Date.now(), 1));
    },
    pages: () => relay.status().clients.length,
  };
};
