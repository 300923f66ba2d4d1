// Consumes a log as `db`, and appends to a file what it has worked on (`work OFFSET=CONTENT …`) and committed (`commit OFFSET`).
//
//   consumer.mjs PLACE FILE
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { endWith, logAt } from './log-at.mjs';

const [place, file] = process.argv.slice(2);
// A kill can leave half a line, so each has a mark at its end.
const note = (...words) => appendFileSync(file, `${words.join(' ')} .\n`);
// The half line ends here.
appendFileSync(file, '\n');
note('run');

const worked = (record) => {
  const { type, offset } = record;
  if (offset === undefined) return type === 'gap' ? 'hole' : [];
  return `${offset}=${type === 'frame' ? record.json().id : type}`;
};
const work = async (records) => {
  await setTimeout(Math.random() * 5);
  note('work', ...records.flatMap(worked));
};
const log = await logAt(place);
log.consume$('db', work, { maxBatch: 100, maxInFlight: 3 }).subscribe({
  next: ({ committed }) => note('commit', committed),
  error: endWith,
});
