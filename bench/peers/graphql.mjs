// graphql-ws: a protocol of its own, whose messages it always parses; the payload inside is of the same size as the others'.
import { createClient } from 'graphql-ws';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take, size }) => {
  const client = createClient({ url: origin + path, webSocketImpl: PlainWebSocket, generateID: () => '1', lazy: true });
  client.subscribe(
    { query: 'subscription { feed }' },
    { next: ({ data }) => data.feed && take(size), error: (error) => console.error(error), complete: () => {} },
  );
};
