// What the TLS of Node costs: a socket that only counts bytes, with read buffers, records and ciphers of different sizes.
import { interleaved, median, report, ROUNDS, sample } from '../lib/bench.mjs';
import { startSender } from '../support/start.mjs';

const file = new URL('sample.mjs', import.meta.url);
const KIB = 1024;
/** OpenSSL does not create or accept larger records (RFC 8446, 5.1). */
const records = [1, 4, 16];
const buffers = [4, 16, 64, 256];
const ciphers = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'];
const [, usual] = ciphers;

const rounds = Math.ceil(ROUNDS / 3);

const senders = Object.fromEntries(
  await Promise.all(records.map(async (kib) => [kib, await startSender('../tls/sender', [kib * KIB])])),
);
const contender = (record, read, cipher) => {
  const { port, cert } = senders[record];
  return [`${record} ${read} ${cipher}`, () => sample(file, [port, cert, read === 'data' ? read : read * KIB, cipher])];
};
const samples = await interleaved({
  title: 'tls',
  rounds,
  contenders: Object.fromEntries([
    ...records.flatMap((record) => [...buffers, 'data'].map((read) => contender(record, read, usual))),
    ...ciphers.map((cipher) => contender(16, 64, cipher)),
  ]),
});
await Promise.all(Object.values(senders).map(({ stop }) => stop()));

const medianOf = (record, read, cipher, key) => median(samples[`${record} ${read} ${cipher}`].map((each) => each[key]));
const nsOf = (record, read, cipher = usual) => Math.round(medianOf(record, read, cipher, 'ns'));
const readBytesOf = (record, read) => Math.round(medianOf(record, read, usual, 'readBytes'));
const bufferNames = (of) => [...buffers, 'data'].map((read) => of(read));
const columns = ['records of the sender', ...buffers.map((kib) => `buffer of ${kib} KiB`), '`data` events'];

await report({
  bench: 'tls',
  command: 'npm run bench -- tls',
  rounds,
  goals: [],
  tables: [
    {
      title: 'CPU time in ns for 64 KiB, AES-256-GCM',
      columns,
      rows: records.map((record) => [`${record} KiB`, ...bufferNames((read) => nsOf(record, read))]),
    },
    {
      title: 'Bytes of a read, on average',
      columns,
      rows: records.map((record) => [`${record} KiB`, ...bufferNames((read) => readBytesOf(record, read))]),
    },
    {
      title: 'CPU time in ns for 64 KiB, records of 16 KiB, a buffer of 64 KiB',
      columns: ['cipher', 'ns'],
      rows: ciphers.map((cipher) => [cipher, nsOf(16, 64, cipher)]),
    },
  ],
});
