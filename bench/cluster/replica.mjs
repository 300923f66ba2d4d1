// One replica in a process: measures its CPU time and the delay of frames. Each frame begins with the time when it was sent.
import { connect } from '@nats-io/transport-node';
import { createFeedCluster } from 'rx-trade-feed/cluster';
import { natsEngine } from 'rx-trade-feed/nats';

const [port, replica] = process.argv.slice(2);
const connection = await connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
const cluster = createFeedCluster('raw', { engine: natsEngine(connection), account: 'bench', replica });

const now = () => Number(process.hrtime.bigint()) / 1e6;
let frames = 0;
let delays = [];
let cpu = process.cpuUsage();

cluster.events$.subscribe((event) => {
  if (event.type === 'frame') {
    frames += 1;
    if (frames % 16 === 0) delays.push(now() - Number(event.text().slice(0, 16)));
  } else if (event.type === 'opened') process.send({ type: 'opened', at: now() });
});
cluster.status$.subscribe(({ role }) => process.send({ type: 'role', role }));

process.on('message', (message) => {
  if (message === 'begin') [frames, delays, cpu] = [0, [], process.cpuUsage()];
  if (message === 'report') {
    const { user, system } = process.cpuUsage(cpu);
    process.send({ type: 'report', frames, cpuNs: (user + system) * 1_000, delays });
  }
  if (message === 'hand-over') void cluster.handOver();
});
