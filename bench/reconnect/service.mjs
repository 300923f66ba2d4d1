// The service of the benchmark: tickets on one origin, streams on another, both over TLS. It uses no library, to be fast. It closes each
// connection with 4003 "access expired" after some time. The first frame of a connection contains the time of the last close frame.
import { createServer } from 'node:tls';
import { certificate } from '../support/certificate.mjs';
import { closeFrame, frame } from '../support/frames.mjs';
import { freePort } from '../support/listen.mjs';
import { headerOf, requests, SUBPROTOCOL, ticketResponse, upgradeResponse } from '../support/session.mjs';
import { nowUs } from '../support/stamp.mjs';

const FRAME_EVERY_MS = 10;
const { cert, key, caFile } = await certificate();
const aFrame = frame(Buffer.from('{"tx":"0x00"}'));
let closed = {};

/** Calls back with the head of each request. After it there is a short body, or the close frame of a WebSocket. */
const onRequest = (socket, answer) => {
  socket.setNoDelay();
  socket.on('error', () => {}).on('data', requests(answer));
};

// The path of the base address has the settings: `/<stream port>/<ms until a close>`.
const tickets = createServer({ cert, key }, (socket) =>
  onRequest(socket, (head) => {
    const [, port, lifeMs] = head.split(' ')[1].split('/').map(Number);
    socket.write(ticketResponse(`wss://127.0.0.1:${port}/ws/${lifeMs}`));
    if (/^connection: *close/im.test(head)) socket.end();
  }),
);

const upgraded = (head) => upgradeResponse(headerOf(head, 'sec-websocket-key'), SUBPROTOCOL);

const streams = createServer({ cert, key }, (socket) =>
  onRequest(socket, (head) => {
    socket.write(Buffer.concat([upgraded(head), frame(Buffer.from(JSON.stringify(closed)))]));
    closed = {};
    const flow = setInterval(() => socket.write(aFrame), FRAME_EVERY_MS);
    const expire = () => {
      clearInterval(flow);
      closed = { closedUs: nowUs() };
      socket.write(closeFrame(4003, 'access expired'));
      // The only bytes from the client are its close frame.
      socket.once('data', () => socket.end());
    };
    const expiry = setTimeout(expire, Number(head.split(' ')[1].split('/')[2]));
    socket.on('close', () => [clearInterval(flow), clearTimeout(expiry)]);
  }),
);

process.send({ type: 'listening', ports: [await freePort(tickets), await freePort(streams)], caFile });
process.once('disconnect', () => process.exit());
