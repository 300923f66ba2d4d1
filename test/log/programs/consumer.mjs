// Consumes a log as `db`, and appends what it has processed to a file.
//
//   consumer.mjs PLACE FILE
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { endWith, logAt } from './log-at.mjs';

const [place, file] = process.argv.slice(2);
const work = async (records) => {
  await setTimeout(Math.random() * 5);
  const ids = records.flatMap((record) => (record.type === 'frame' ? [record.json().id] : []));
  if (ids.length > 0) appendFileSync(file, `${ids.join('\n')}\n`);
};
const log = await logAt(place);
log.consume$('db', work, { maxBatch: 100, maxInFlight: 3 }).subscribe({ error: endWith });
