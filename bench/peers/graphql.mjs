// graphql-ws: a separate protocol, whose messages it always parses. The payload has the same size.
import { createClient } from 'graphql-ws';
import { PlainWebSocket } from './plain-ws.mjs';

export const open = ({ origin, path, take, size }) => {
  const client = createClient({ url: origin + path, webSocketImpl: PlainWebSocket, generateID: () => '1', lazy: true });
  client.subscribe(
    { query: 'subscription { feed }' },
    { next: ({ data }) => data.feed && take(size), error: (error) => console.error(error), complete: () => {} },
  );
};
