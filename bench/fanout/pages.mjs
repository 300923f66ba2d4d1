// Many pages that receive a feed: `node pages.mjs <port> <count>`. It counts the bytes that they receive, and parses nothing.
//
// It sends these IPC messages: `open` when all have received something, and `report` (bytes) after any message.
import { connect } from 'node:net';

const [port, count] = process.argv.slice(2).map(Number);
let [bytes, open] = [0, 0];
// One buffer for all: a page of the benchmark mustn't cost more than the server.
const buffer = Buffer.alloc(64 * 1024);
for (let n = 0; n < count; n += 1) {
  let isOpen = false;
  const socket = connect({
    port,
    host: '127.0.0.1',
    onread: {
      buffer,
      callback: (length) => {
        bytes += length;
        if (!isOpen) {
          isOpen = true;
          if ((open += 1) === count) process.send({ type: 'open' });
        }
        return true;
      },
    },
  });
  socket.write('GET /feed HTTP/1.1\r\nHost: localhost\r\n\r\n');
}
process.on('message', () => process.send({ type: 'report', bytes }));
process.once('disconnect', () => process.exit());
