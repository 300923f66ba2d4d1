// One client that is disconnected a few times: the time from the close frame to the next frame, and to each step between them.
//
// The close frame counts as read half a round trip after it was written.
import { fetch, request } from 'undici';
import { WebSocket } from 'ws';
import { tradeFeedEvents$ } from '../../dist/index.js';
import { medianOf } from '../lib/stats.mjs';
import { nowUs } from '../support/stamp.mjs';
import { limit, limitStandby } from './limit.mjs';

const post = { method: 'POST', headers: { 'x-api-key': 'bench-key', 'content-type': 'application/json' }, body: '{}' };

/** How a simple client requests its ticket: over a new connection, or over the pool of undici. */
const ticketFrom = {
  own: async (url) => (await request(url, { ...post, reset: true })).body.json(),
  pooled: async (url) => (await fetch(url, post)).json(),
};

/** A simple client: a ticket, a WebSocket, and both again after `close`. */
const naive =
  (how) =>
  ({ baseUrl, onOpen, onFrame }) => {
    const connect = async () => {
      const { ticket, wss_url: url, subprotocol } = await ticketFrom[how](`${baseUrl}/v1/wss/tickets`);
      const webSocket = new WebSocket(url, [subprotocol], { headers: { authorization: `Bearer ${ticket}` } });
      webSocket.on('open', onOpen).on('message', onFrame).on('close', connect);
    };
    void connect();
  };

/** This library with its defaults, except that a connection counts as stable earlier. */
const ours =
  (options) =>
  ({ baseUrl, onOpen, onFrame }) =>
    tradeFeedEvents$('market', { baseUrl, apiKey: 'bench-key', backoff: { stableAfterMs: 50 }, ...options }).subscribe(
      (event) => {
        if (event.type === 'opened') onOpen();
        if (event.type === 'frame') onFrame(event.data);
      },
    );

/** Each streams until the process ends. `onOpen` is called for each connection, then `onFrame` with the data of each frame. */
const clients = {
  limit,
  limitStandby,
  naive: naive('own'),
  pooled: naive('pooled'),
  ours: ours({}),
  standby: ours({ standby: true }),
};

const [name, baseUrl, roundTrip, reconnects] = process.argv.slice(2);
const roundTripUs = Number(roundTrip) * 1000;
const gaps = [];
let isFirst = false;

const onFrame = (data) => {
  if (!isFirst) return;
  isFirst = false;
  const readUs = nowUs();
  const { closedUs, requestUs, begunUs, upgradeUs } = JSON.parse(data.toString());
  if (closedUs === undefined) return;
  // In round trips after the close frame was read. The service receives a request half a round trip after it was sent.
  const after = (us) => (us - closedUs) / roundTripUs - 0.5;
  gaps.push({
    ticketRequest: after(requestUs) - 0.5,
    connect: after(begunUs),
    upgrade: after(upgradeUs) - 0.5,
    gap: after(readUs),
  });
  if (gaps.length < Number(reconnects)) return;
  const result = Object.fromEntries(Object.keys(gaps[0]).map((key) => [key, medianOf(gaps, key)]));
  process.stdout.write(`${JSON.stringify({ ...result, first: gaps[0].gap })}\n`, () => process.exit(0));
};

clients[name]({ baseUrl, onFrame, onOpen: () => (isFirst = true) });
