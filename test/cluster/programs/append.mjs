// A replica that appends to a log while it owns the connection. Reports its role, what it appends, and errors. Its argument is a JSON object.
import { connect } from '@nats-io/transport-node';
import { retry, tap } from 'rxjs';
import { createFeedCluster } from '../../../src/cluster/index.ts';
import { feedLog } from '../../../src/log/index.ts';
import * as nats from '../../../src/nats/index.ts';
import { connectEngine } from '../../peers/brokers.mjs';

const { kind, port, folder, ...options } = JSON.parse(process.argv[2]);
const { engine } = await connectEngine(kind, port);
const cluster = createFeedCluster('market', { engine, account: 'main', ...options });
const sharedLog = async () => nats.jetStreamLog(await connect({ servers: `127.0.0.1:${port}` }), { name: 'market' });
const log = kind === 'nats' ? await sharedLog() : feedLog(folder);
cluster.frames$.subscribe();
cluster.status$.subscribe(({ role }) => process.send({ role }));
cluster
  .append(log)
  .pipe(tap({ error: ({ code }) => process.send({ code }) }), retry({ delay: 50 }))
  .subscribe((event) => event.type === 'frame' && process.send({ text: event.text() }));
process.once('disconnect', () => process.exit());
