// The limit: a socket that counts bytes and does not parse them.
import net from 'node:net';
import tls from 'node:tls';

export const open = ({ origin, path, takeBytes }) => {
  const { protocol, hostname: host, port } = new URL(origin);
  const socket =
    protocol === 'wss:' ? tls.connect({ host, port: Number(port) }) : net.connect({ host, port: Number(port) });
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
  ];
  socket.write(`${[...lines, 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='].join('\r\n')}\r\n\r\n`);
  socket.once('data', () => socket.on('data', (chunk) => takeBytes(chunk.length)));
};
