// Consumes a log as `db`, and appends what it has processed to a file.
//
//   consumer.mjs FOLDER FILE
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { feedLog } from '../../../src/log/index.ts';

const [folder, file] = process.argv.slice(2);
const work = async (records) => {
  await setTimeout(Math.random() * 5);
  const ids = records.flatMap((record) => (record.type === 'frame' ? [record.json().id] : []));
  if (ids.length > 0) appendFileSync(file, `${ids.join('\n')}\n`);
};
feedLog(folder)
  .consume$('db', work, { maxBatch: 50, maxInFlight: 3 })
  .subscribe({
    error: ({ code }) => {
      console.log(code);
      process.exit(1);
    },
  });
