// Consumes a log on JetStream as `db`, and appends what it has processed to a file.
//
//   log-consumer.mjs PORT FILE
import { connect } from '@nats-io/transport-node';
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { jetStreamLog } from '../../../src/nats/index.ts';

const [port, file] = process.argv.slice(2);
const connection = await connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
const work = async (records) => {
  await setTimeout(Math.random() * 5);
  const ids = records.flatMap((record) => (record.type === 'frame' ? [record.json().id] : []));
  if (ids.length > 0) appendFileSync(file, `${ids.join('\n')}\n`);
};
jetStreamLog(connection, { name: 'market' })
  .consume$('db', work, { maxBatch: 200, maxInFlight: 3 })
  .subscribe({
    error: ({ code }) => {
      console.log(code);
      process.exit(1);
    },
  });
