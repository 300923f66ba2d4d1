// The server side of one connection, without a library: ticket requests, the upgrade, and the close frame of the client.
import { createHash } from 'node:crypto';
import { frame } from './frames.mjs';

/** The subprotocol that the answer to a ticket request names. */
export const SUBPROTOCOL = 'mmp.trade-batch.v1';
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Reads the path of a request: `/200/text` is a size and a kind. */
export const parsePath = (path) => {
  const [, size, kind] = /^\/(\d+)\/(text|unicode|batches|binary)/.exec(path) ?? [];
  if (kind === undefined) throw new RangeError(`Invalid path: ${path}`);
  return { size: Number(size), kind };
};

/** Returns the answer to an upgrade with this key. */
export const upgradeResponse = (key, subprotocol) => {
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
  ];
  return Buffer.from(
    [...lines, ...(subprotocol ? [`Sec-WebSocket-Protocol: ${subprotocol}`] : []), '', ''].join('\r\n'),
  );
};

/** Returns the answer to a ticket request (contract, section 2.1), for a sender that accepts all clients. */
export const ticketResponse = (wssUrl) => {
  const body = JSON.stringify({
    ticket: 'bench-ticket',
    token_type: 'Bearer',
    expires_at: new Date(Date.now() + 60_000).toISOString(),
    wss_url: wssUrl,
    feed: 'market',
    subprotocol: SUBPROTOCOL,
  });
  const head = ['HTTP/1.1 200 OK', 'Content-Type: application/json', `Date: ${new Date().toUTCString()}`];
  return Buffer.from(`${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`);
};

/** Returns a header of a request, up to the first comma. */
export const headerOf = (head, name) => new RegExp(`^${name}: *([^,\\r]*)`, 'im').exec(head)?.[1];

/** Reads the first frame of the client, which is short and masked. Returns `undefined` while bytes are missing. */
const frameIn = (bytes) => {
  if (bytes.length < 6) return undefined;
  const isLonger = (bytes[1] & 0x7f) === 126;
  const head = isLonger ? 8 : 6;
  const end = head + (isLonger ? bytes.readUInt16BE(2) : bytes[1] & 0x7f);
  if (bytes.length < end) return undefined;
  const mask = bytes.subarray(head - 4, head);
  const data = Buffer.from(bytes.subarray(head, end).map((byte, n) => byte ^ mask[n % 4]));
  return { opcode: bytes[0] & 0x0f, data, end };
};

/**
 * Returns a function that reads the bytes of a connection.
 *
 * @param origin - the address of the server: `ws://127.0.0.1:1234`
 * @param write - is called with each answer
 * @param start - is called with the path when frames may be sent
 * @param hangUp - is called with the answer to the close frame of the client
 */
export const session = ({ origin, write, start, hangUp = () => {} }) => {
  let isOpen = false;
  let rest = Buffer.alloc(0);
  const listen = (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let next = frameIn(rest); next; next = frameIn(rest)) {
      rest = rest.subarray(next.end);
      if (next.opcode === 8) hangUp(frame(next.data, 'close'));
    }
  };
  const request = (text) => {
    const [method, target] = text.split(' ');
    if (method === 'POST') return write(ticketResponse(origin + target.replace(/\/v1\/wss\/tickets$/, '')));
    isOpen = true;
    write(upgradeResponse(headerOf(text, 'sec-websocket-key'), headerOf(text, 'sec-websocket-protocol')));
    start(target);
  };
  const read = requests(request);
  return (bytes) => (isOpen ? listen(bytes) : read(bytes));
};

/** Returns a function that reads bytes, and calls back with the head of each request. Its body is small and not used. */
export const requests = (answer) => {
  let read = '';
  return (bytes) => {
    read += bytes.toString('latin1');
    const end = read.indexOf('\r\n\r\n');
    if (end === -1) return;
    const head = read.slice(0, end);
    if (read.length < end + 4 + Number(headerOf(head, 'content-length') ?? 0)) return;
    read = '';
    answer(head);
  };
};
