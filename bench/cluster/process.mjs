// One process of the benchmark, which measures its CPU time. Its argument is a JSON object. Its role is a replica, a feed that is `alone`, or the
// `sender` or `receiver` of messages without a cluster.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { cpuNs } from '../support/cpu.mjs';

const { role, port, account, name, baseUrl, batchBytes, bytes, window, workUs } = JSON.parse(process.argv[2]);
const subject = 'bare';
/** Every so many frames one time is noted. */
const sampleEvery = 16;
/** How many messages one turn of the event loop sends: as many as an owner sends for a read of 64 KiB. */
const perTurn = 5;

/** The frames or messages that this process has received or sent. `from`: how many there were when the reports of their arrival began. */
let [count, gaps, times] = [0, 0, []];
let [reportEvery, from] = [undefined, 0];
let limit = 0;
let begin = { cpu: cpuNs(), count };

const arrived = () => {
  count += 1;
  if (count % reportEvery === 0) process.send({ type: 'received', received: count - from });
};
const receive = (event) => {
  if (event.type === 'frame') {
    arrived();
    if (count % sampleEvery === 0) times.push([count, Number(process.hrtime.bigint()) / 1e6]);
  } else if (event.type === 'opened') process.send({ type: 'ready' });
  else if (event.type === 'gap') gaps += 1;
};
const connected = () => connect({ servers: `127.0.0.1:${port}` });

/** Uses the CPU as long as a replica does for the frames of a message. */
const work = () => {
  const until = process.hrtime.bigint() + BigInt(workUs * 1_000);
  while (process.hrtime.bigint() < until);
};

const roles = {
  replica: async () => {
    const { createFeedCluster } = await import('rx-trade-feed/cluster');
    const { natsEngine } = await import('rx-trade-feed/nats');
    const engine = natsEngine(await connected());
    const options = { apiKey: 'bench', baseUrl, engine, account, replica: name, batchBytes };
    createFeedCluster('market', options).events$.subscribe(receive);
  },
  alone: async () => {
    const { tradeFeedEvents$ } = await import('rx-trade-feed');
    tradeFeedEvents$('market', { apiKey: 'bench', baseUrl }).subscribe(receive);
  },
  receiver: async () => {
    const connection = await connected();
    const callback = () => {
      work();
      arrived();
    };
    connection.subscribe(subject, { callback });
    await connection.flush();
    process.send({ type: 'ready' });
  },
  /** Sends as many messages as arrive, so no process is flooded. */
  sender: async () => {
    const connection = await connected();
    const payload = Buffer.alloc(bytes, 'x');
    process.send({ type: 'ready' });
    for (;;) {
      for (const end = Math.min(limit, count + perTurn); count < end; count += 1) {
        work();
        connection.publish(subject, payload);
      }
      await nextTurn();
    }
  },
};

process.on('message', (message) => {
  if (message.received !== undefined) limit = message.received + window;
  if (message.reportEvery !== undefined) [reportEvery, from] = [message.reportEvery, count];
  if (message === 'begin') [times, begin] = [[], { cpu: cpuNs(), count }];
  if (message === 'report')
    process.send({ type: 'report', count: count - begin.count, cpuNs: cpuNs(begin.cpu), times, gaps });
});
process.once('disconnect', () => process.exit());
await roles[role]();
