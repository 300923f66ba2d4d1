// The client that one writes first: a ticket, a WebSocket, and again when that says `close`.
import { fetch, request } from 'undici';
import { WebSocket } from 'ws';

const post = { method: 'POST', headers: { 'x-api-key': 'bench-key', 'content-type': 'application/json' }, body: '{}' };

/** Where the ticket comes from: over a connection of its own, or over one of undici's pool. */
const ticketFrom = {
  own: async (url) => (await request(url, { ...post, reset: true })).body.json(),
  pooled: async (url) => (await fetch(url, post)).json(),
};

/** Streams for ever; `onFrame` gets the data of each frame, `onOpen` is called before the first of a connection. */
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
