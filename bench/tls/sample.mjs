// One sample: the CPU time of a socket over TLS that counts bytes. `node bench/tls/sample.mjs <port> <cert> <read buffer bytes, or data> <cipher>`
import { once } from 'node:events';
import { connect } from 'node:tls';

const [port, cert, read, cipher] = process.argv.slice(2);
const WARM_UP_BYTES = 200e6;
const BYTES = 600e6;

let received = 0;
let reads = 0;
let begun;
let finish;
const finished = new Promise((resolve) => (finish = resolve));

const count = (bytes) => {
  received += bytes;
  reads += 1;
  if (begun === undefined && received >= WARM_UP_BYTES) {
    [received, reads] = [0, 0];
    begun = process.cpuUsage();
  } else if (begun !== undefined && received >= BYTES) finish();
  return true;
};
const onread = read === 'data' ? undefined : { buffer: Buffer.alloc(Number(read)), callback: count };
const socket = connect({ port: Number(port), servername: 'localhost', ca: cert, ciphers: cipher, onread });
if (onread === undefined) socket.on('data', ({ length }) => count(length));
await once(socket, 'secureConnect');
await finished;
const { user, system } = process.cpuUsage(begun);
console.log(
  JSON.stringify({
    ns: ((user + system) * 1e3) / (received / 65_536),
    readBytes: received / reads,
    cipher: socket.getCipher().name,
  }),
);
process.exit();
