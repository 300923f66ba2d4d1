// The relay of this library, with the limits of a server in production.
import { filter, Subject } from 'rxjs';
import { Frame } from '../../dist/index.js';
import { createRelay, relayHandler } from '../../dist/relay/index.js';

const large = filter((event) => event.type !== 'frame' || event.byteLength > 100_000);

export const start = () => {
  const events = new Subject();
  const relay = createRelay(events, { maxClients: 10_000, maxClientsPerUser: 4, maxAgeMs: 60 * 60_000 });
  let users = 0;
  const handle = relayHandler(relay, {
    authorize: () => ({ id: (users += 1) }),
    select: ({ url }) => (url === '/large' ? large : undefined),
  });
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
