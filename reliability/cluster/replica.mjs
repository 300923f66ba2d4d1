// One replica of the check: a process that reports what it emits, and appends it to a log while it owns the connection. Its argument is a JSON
// object.
import { retry } from 'rxjs';
import { createFeedCluster } from 'rx-trade-feed/cluster';
import { feedLog } from 'rx-trade-feed/log';
import { connectEngine } from '../../test/peers/brokers.mjs';

const { kind, port, baseUrl, apiKey, name, log } = JSON.parse(process.argv[2]);
const { engine } = await connectEngine(kind, port);
const cluster = createFeedCluster('market', { engine, account: 'main', replica: name, baseUrl, apiKey });

/** What was emitted since the last report: runs of frames, gaps, and other events. */
let entries = [];
let run;

const frame = (number) => {
  if (number === run?.to + 1) run.to = number;
  else entries.push((run = { type: 'frames', from: number, to: number, at: Date.now() }));
  run.lastAt = Date.now();
};

const other = (entry) => {
  run = undefined;
  entries.push({ at: Date.now(), ...entry });
};

const flush = () => {
  if (entries.length === 0) return;
  process.send({ entries });
  entries = [];
  // The next frame begins a new run, because this one was sent.
  run = undefined;
};

const handlers = {
  next: (event) => {
    if (event.type === 'frame') frame(Number.parseInt(event.text(), 10));
    else if (event.type === 'gap') other({ type: 'gap', code: event.failure.code, missed: event.missed });
    else if (event.type === 'owner-changed') other({ type: 'owner-changed', owner: event.owner });
  },
  error: (error) => {
    other({ type: 'error', code: error.code ?? String(error) });
    flush();
  },
};
cluster.events$.subscribe(handlers);
cluster
  .whileOwner(feedLog(log, { maxBytes: 200e6 }).append())
  .pipe(retry({ delay: 100 }))
  .subscribe();
cluster.status$.subscribe((status) => process.send({ status, at: Date.now() }));
setInterval(flush, 20);

const leave = async () => {
  await cluster.handOver();
  flush();
  process.send({ left: true }, () => process.exit());
};
process.once('SIGTERM', () => void leave());
process.once('disconnect', () => process.exit());
process.on('message', async ({ resume }) => {
  if (!resume) return;
  await cluster.resume();
  cluster.events$.subscribe(handlers);
});
