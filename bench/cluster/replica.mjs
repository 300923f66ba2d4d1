// One replica in a process, or a feed without a cluster: measures its CPU time, and when frames arrive. Its argument is a JSON object.
import { connect } from '@nats-io/transport-node';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { createFeedCluster } from 'rx-trade-feed/cluster';
import { natsEngine } from 'rx-trade-feed/nats';
import { cpuNs } from '../support/cpu.mjs';

const { port, account, name, batchBytes, isAlone } = JSON.parse(process.argv[2]);
const apiKey = process.env.TRADE_FEED_API_KEY ?? 'bench';

const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
/** Every so many frames one time is noted. */
const sampleEvery = 16;
let frames = 0;
let gaps = 0;
let times = [];
/** After how many frames this process reports that they have arrived; `undefined` if it doesn't. */
let reportEvery;
let from = 0;
let begin = { cpu: cpuNs(), frames };

const receive = (event) => {
  if (event.type === 'frame') {
    frames += 1;
    if (frames % sampleEvery === 0) times.push([frames, nowMs()]);
    if (frames % reportEvery === 0) process.send({ type: 'received', frames: frames - from });
  } else if (event.type === 'opened') process.send({ type: 'opened', at: nowMs() });
  else if (event.type === 'gap') gaps += 1;
};

const startCluster = async () => {
  const connection = await connect({
    servers: `127.0.0.1:${port}`,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    ignoreAuthErrorAbort: true,
    timeout: 2_000,
  });
  const engine = natsEngine(connection);
  const cluster = createFeedCluster('market', { apiKey, engine, account, replica: name, batchBytes });
  cluster.events$.subscribe(receive);
};

if (isAlone) tradeFeedEvents$('market', { apiKey }).subscribe(receive);
else await startCluster();

process.on('message', (message) => {
  if (message.reportEvery !== undefined) [reportEvery, from] = [message.reportEvery, frames];
  if (message === 'begin') [times, begin] = [[], { cpu: cpuNs(), frames }];
  if (message === 'report')
    process.send({ type: 'report', frames: frames - begin.frames, cpuNs: cpuNs(begin.cpu), times, gaps });
});
process.once('disconnect', () => process.exit());
