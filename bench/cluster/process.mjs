// One process of the benchmark, which measures its CPU time. Its argument is a JSON object. Its role is a `replica`, or a feed that is `alone`.
import { connect } from '@nats-io/transport-node';
import { cpuNs } from '../support/cpu.mjs';

const { role, port, account, name, baseUrl, batchBytes } = JSON.parse(process.argv[2]);
/** Every so many frames one time is noted. */
const sampleEvery = 16;

/** The frames that this process has received. `from`: how many there were when the reports of their arrival began. */
let [count, gaps, times] = [0, 0, []];
let [reportEvery, from] = [undefined, 0];
let begin = { cpu: cpuNs(), count };

const receive = (event) => {
  if (event.type === 'frame') {
    count += 1;
    if (count % reportEvery === 0) process.send({ type: 'received', received: count - from });
    if (count % sampleEvery === 0) times.push([count, Number(process.hrtime.bigint()) / 1e6]);
  } else if (event.type === 'opened') process.send({ type: 'ready' });
  else if (event.type === 'gap') gaps += 1;
};

const roles = {
  replica: async () => {
    const { createFeedCluster } = await import('rx-trade-feed/cluster');
    const { natsEngine } = await import('rx-trade-feed/nats');
    const engine = natsEngine(await connect({ servers: `127.0.0.1:${port}` }));
    const options = { apiKey: 'bench', baseUrl, engine, account, replica: name, batchBytes };
    createFeedCluster('market', options).events$.subscribe(receive);
  },
  alone: async () => {
    const { tradeFeedEvents$ } = await import('rx-trade-feed');
    tradeFeedEvents$('market', { apiKey: 'bench', baseUrl }).subscribe(receive);
  },
};

process.on('message', (message) => {
  if (message.reportEvery !== undefined) [reportEvery, from] = [message.reportEvery, count];
  if (message === 'begin') [times, begin] = [[], { cpu: cpuNs(), count }];
  if (message === 'report')
    process.send({ type: 'report', count: count - begin.count, cpuNs: cpuNs(begin.cpu), times, gaps });
});
process.once('disconnect', () => process.exit());
await roles[role]();
