// Answers every ticket request with a ticket for one sender, over HTTP or HTTPS, and keeps connections alive.
import { createServer as createPlain } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { SUBPROTOCOL } from './ticket-body.mjs';

/**
 * Starts it in this process; resolves with its `baseUrl`, what it saw, and `stop()`.
 *
 * @param wssUrl - where the ticket leads, or a function that is asked each time
 * @param tls - `{ cert, key }`
 * @param delayMs - between request and answer
 */
export const startTicketServer = ({ wssUrl, tls, delayMs = 0, port = 0 }) =>
  new Promise((resolve, reject) => {
    const seen = { requests: 0, connections: 0 };
    const answer = (request, response) => {
      request.resume();
      seen.requests += 1;
      const body = {
        ticket: `bench-ticket-${seen.requests}`,
        token_type: 'Bearer',
        expires_at: new Date(Date.now() + 60_000).toISOString(),
        wss_url: typeof wssUrl === 'function' ? wssUrl() : wssUrl,
        feed: 'market',
        subprotocol: SUBPROTOCOL,
      };
      const send = () => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
      if (delayMs > 0) setTimeout(send, delayMs);
      else send();
    };
    const server = tls ? createSecure(tls, answer) : createPlain(answer);
    server.on(tls ? 'secureConnection' : 'connection', () => (seen.connections += 1));
    server.once('error', reject).listen(port, '127.0.0.1', () => {
      const stop = () =>
        new Promise((done) => {
          server.close(done);
          server.closeAllConnections();
        });
      resolve({ baseUrl: `${tls ? 'https' : 'http'}://127.0.0.1:${server.address().port}`, seen, stop });
    });
  });
