// A client of NATS without a cluster: sends messages, or receives them, and measures its CPU time. Its argument is a JSON object.
import { connect } from '@nats-io/transport-node';

const { port, isSender, bytes, window } = JSON.parse(process.argv[2]);
const subject = 'bare';

const connection = await connect({ servers: `127.0.0.1:${port}` });
const payload = Buffer.alloc(bytes, 'x');
let count = 0;
let begin = { cpu: process.cpuUsage(), count };

/** Sends as many messages as arrive, so no process is flooded. */
const sendAfter = (received) => {
  for (; count < received + window; count += 1) connection.publish(subject, payload);
};

const receive = () => {
  count += 1;
  if (count % (window / 4) === 0) process.send({ type: 'received', count });
};

if (!isSender) connection.subscribe(subject, { callback: receive });
await connection.flush();
process.send({ type: 'ready' });

process.on('message', (message) => {
  if (message.received !== undefined) sendAfter(message.received);
  if (message === 'begin') begin = { cpu: process.cpuUsage(), count };
  if (message === 'report') {
    const { user, system } = process.cpuUsage(begin.cpu);
    process.send({ type: 'report', count: count - begin.count, cpuNs: (user + system) * 1_000 });
  }
});
process.once('disconnect', () => process.exit());
