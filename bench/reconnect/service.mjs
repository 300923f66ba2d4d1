// The service behind the relay: tickets on one origin, streams on another, both over TLS. It closes each connection with 4003
// "access expired" once it is old enough, and says in the first frame of each what it has seen since the close before it.
import { createServer } from 'node:https';
import { WebSocketServer } from 'ws';
import { certificate } from '../support/certificate.mjs';
import { nowUs } from '../support/stamp.mjs';
import { SUBPROTOCOL } from '../support/ticket-body.mjs';

const FRAME_EVERY_MS = 10;
const { cert, key, caFile } = await certificate();
let seen = {};
let tickets = 0;

// The path of the base address says how the service behaves: `/<stream port>/<ms until a close>/<ms that an idle connection is kept>`.
const ticketServer = createServer({ cert, key, noDelay: true }, (request, response) => {
  seen.requestUs = nowUs();
  const [, port, lifeMs, idleMs] = request.url.split('/').map(Number);
  tickets += 1;
  request.resume().once('end', () => {
    response.setHeader('content-type', 'application/json').end(
      JSON.stringify({
        ticket: `bench-ticket-${tickets}`,
        token_type: 'Bearer',
        expires_at: new Date(Date.now() + 60_000).toISOString(),
        wss_url: `wss://127.0.0.1:${port}/ws/${lifeMs}`,
        feed: 'market',
        subprotocol: SUBPROTOCOL,
      }),
    );
    if (idleMs > 0) response.once('close', () => setTimeout(() => request.socket.end(), idleMs).unref());
  });
});
ticketServer.keepAliveTimeout = 60_000;

const streamServer = createServer({ cert, key, noDelay: true });
streamServer.on('connection', (socket) => (socket.begunUs = nowUs()));
streamServer.on('secureConnection', (socket) => (socket.securedUs = nowUs()));
const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
streamServer.on('upgrade', (request, socket, head) => {
  seen.upgradeUs = nowUs();
  seen.begunUs = socket._parent?.begunUs;
  webSockets.handleUpgrade(request, socket, head, (webSocket) => {
    webSocket.send(JSON.stringify(seen));
    seen = {};
    const flow = setInterval(() => webSocket.send('{"tx":"0x00"}'), FRAME_EVERY_MS);
    const expiry = setTimeout(
      () => {
        clearInterval(flow);
        seen.closedUs = nowUs();
        webSocket.close(4003, 'access expired');
      },
      Number(request.url.split('/')[2]),
    );
    webSocket.on('error', () => {}).on('close', () => [clearInterval(flow), clearTimeout(expiry)]);
  });
});

const listening = (server) =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
const ports = [await listening(ticketServer), await listening(streamServer)];
process.send({ type: 'listening', ports, caFile });
