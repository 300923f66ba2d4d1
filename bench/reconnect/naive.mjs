// A simple client: a ticket, a WebSocket, and both again after `close`.
import { fetch, request } from 'undici';
import { WebSocket } from 'ws';

const post = { method: 'POST', headers: { 'x-api-key': 'bench-key', 'content-type': 'application/json' }, body: '{}' };

/** How the ticket is requested: over a new connection, or over the pool of undici. */
const ticketFrom = {
  own: async (url) => (await request(url, { ...post, reset: true })).body.json(),
  pooled: async (url) => (await fetch(url, post)).json(),
};

/** Streams until the process ends. `onOpen` is called for each connection, then `onFrame` with the data of each frame. */
export const naive =
  (how) =>
  ({ baseUrl, onOpen, onFrame }) => {
    const connect = async () => {
      const { ticket, wss_url: url, subprotocol } = await ticketFrom[how](`${baseUrl}/v1/wss/tickets`);
      const webSocket = new WebSocket(url, [subprotocol], { headers: { authorization: `Bearer ${ticket}` } });
      webSocket.on('open', onOpen).on('message', onFrame).on('close', connect);
    };
    void connect();
  };
