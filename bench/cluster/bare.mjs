// A client of NATS without a cluster: sends messages, or receives them, and measures its CPU time. Its argument is a JSON object.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { cpuNs } from '../support/cpu.mjs';

const { port, isSender, bytes, window, workUs } = JSON.parse(process.argv[2]);
const subject = 'bare';
/** How many messages one turn of the event loop sends: as many as an owner sends for a read of 64 KiB. */
const perTurn = 5;

const connection = await connect({ servers: `127.0.0.1:${port}` });
const payload = Buffer.alloc(bytes, 'x');
let count = 0;
let limit = 0;
let begin = { cpu: cpuNs(), count };

/** Uses the CPU as long as a replica does for the frames of a message. */
const work = () => {
  const until = process.hrtime.bigint() + BigInt(workUs * 1_000);
  while (process.hrtime.bigint() < until);
};

/** Sends as many messages as arrive, so no process is flooded. */
const send = async () => {
  for (;;) {
    for (const end = Math.min(limit, count + perTurn); count < end; count += 1) {
      work();
      connection.publish(subject, payload);
    }
    await nextTurn();
  }
};

const receive = () => {
  work();
  count += 1;
  if (count % (window / 4) === 0) process.send({ type: 'received', count });
};

if (isSender) void send();
else connection.subscribe(subject, { callback: receive });
await connection.flush();
process.send({ type: 'ready' });

process.on('message', (message) => {
  if (message.received !== undefined) limit = message.received + window;
  if (message === 'begin') begin = { cpu: cpuNs(), count };
  if (message === 'report') process.send({ type: 'report', count: count - begin.count, cpuNs: cpuNs(begin.cpu) });
});
process.once('disconnect', () => process.exit());
