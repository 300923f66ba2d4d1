// Floods each connection over TLS, in records of a size. `node bench/tls/sender.mjs <record bytes>`
import { createServer } from 'node:tls';
import { certificate } from '../support/certificate.mjs';

const recordBytes = Number(process.argv[2]);
const { cert, key } = await certificate();
const bytes = Buffer.alloc(256 * 1024, '{"transaction":true}');

const server = createServer({ cert, key }, (socket) => {
  socket.setMaxSendFragment(recordBytes);
  const write = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', write).on('error', () => socket.destroy());
  write();
}).listen(0, '127.0.0.1', () => process.send({ type: 'listening', port: server.address().port, cert }));
process.once('disconnect', () => process.exit());
