// The limits: a socket that counts bytes and doesn't parse them. It receives each read in a new Buffer (`data` events), or all reads in
// one buffer (`onread`).
import net from 'node:net';
import tls from 'node:tls';

const BUFFER_BYTES = 512 * 1024;

export const open = ({ origin, path, takeBytes, isInPlace = false }) => {
  const { protocol, hostname: host, port } = new URL(origin);
  const onread = { buffer: Buffer.alloc(BUFFER_BYTES), callback: (length) => (takeBytes(length), true) };
  const options = { host, port: Number(port), ...(isInPlace && { onread }) };
  const socket = (protocol === 'wss:' ? tls : net).connect(options);
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
  ];
  socket.write(`${[...lines, 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='].join('\r\n')}\r\n\r\n`);
  if (!isInPlace) socket.once('data', () => socket.on('data', (chunk) => takeBytes(chunk.length)));
};
