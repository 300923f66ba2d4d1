// One client that is disconnected a few times: the time from the close frame to the next frame, in round trips.
//
// The close frame counts as read half a round trip after it was written.
import { request } from 'undici';
import { WebSocket } from 'ws';
import { tradeFeedEvents$ } from '../../dist/index.js';
import { median } from '../lib/stats.mjs';
import { nowUs } from '../support/stamp.mjs';

const post = { method: 'POST', headers: { 'x-api-key': 'bench-key', 'content-type': 'application/json' }, body: '{}' };

/** A simple client: a ticket over a new connection, a WebSocket, and both again after `close`. */
const naive = ({ baseUrl, onOpen, onFrame }) => {
  const connect = async () => {
    const { body } = await request(`${baseUrl}/v1/wss/tickets`, { ...post, reset: true });
    const { ticket, wss_url: url, subprotocol } = await body.json();
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
const clients = { naive, ours: ours({}), standby: ours({ standby: true }) };

const [name, baseUrl, roundTrip, reconnects] = process.argv.slice(2);
const roundTripUs = Number(roundTrip) * 1000;
const gaps = [];
let isFirst = false;

const onFrame = (data) => {
  if (!isFirst) return;
  isFirst = false;
  const readUs = nowUs();
  const { closedUs } = JSON.parse(data.toString());
  if (closedUs === undefined) return;
  gaps.push((readUs - closedUs) / roundTripUs - 0.5);
  if (gaps.length < Number(reconnects)) return;
  process.stdout.write(`${JSON.stringify({ gap: median(gaps) })}\n`, () => process.exit(0));
};

clients[name]({ baseUrl, onFrame, onOpen: () => (isFirst = true) });
