// @ts-check
// Stores the frames of a log in PostgreSQL, with the place in the transaction of the rows: no row is lost and none is there twice, whenever you kill
// this program. It needs no package for PostgreSQL, only `psql`.
//
//   node examples/log-to-postgres/store.mjs FOLDER    with the settings of psql: PGHOST, PGDATABASE, …
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { feedLog } from 'rx-trade-feed/log';

const [folder = 'market'] = process.argv.slice(2);

/** Runs a script of SQL in psql. Returns its output. Without `commit` at the end of the script nothing is stored, so half a script is harmless. */
const psql = async (/** @type {string} */ script) => {
  const args = ['--no-psqlrc', '--quiet', '--tuples-only', '--no-align', '--set', 'ON_ERROR_STOP=1', '--file', '-'];
  const child = spawn('psql', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  child.stdin.end(script);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`psql ended with ${code}. Nothing of this batch is stored.`);
  return output.trim();
};

/** Writes a value for `copy … from stdin`: the text format of PostgreSQL. */
const field = (/** @type {string} */ text) =>
  text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n').replaceAll('\r', '\\r');

/** The place in the log after the last stored record, as JSON: offsets alone can repeat after a log has lost data. */
let place = await psql(`
set client_min_messages = warning;
create table if not exists frames (at timestamptz, payload text);
create table if not exists position (one boolean primary key default true, place text);
insert into position values (true, '') on conflict do nothing;
select place from position;
`);
const from = place === '' ? 'earliest' : /** @type {import('rx-trade-feed/log').Place} */ (JSON.parse(place));
console.log(`from ${from === 'earliest' ? 0 : from.offset}`);

for await (const records of feedLog(folder).read({ from })) {
  const stored = records.filter((record) => record.type !== 'watermark' && record.offset !== undefined);
  const position = stored.at(-1)?.position;
  if (position === undefined) continue; // only the time has moved
  const next = JSON.stringify(position);
  const rows = stored.flatMap((record) =>
    record.type === 'frame' ? [`${new Date(record.receivedAt).toISOString()}\t${field(record.text())}\n`] : [],
  );
  // A process that you killed may still have a psql that commits. Then this update finds no row, and nothing is stored twice.
  await psql(`
begin;
do $$ begin
  update position set place = '${next}' where place = '${place}';
  if not found then raise exception 'another process has stored these records'; end if;
end $$;
copy frames from stdin;
${rows.join('')}\\.
commit;
`);
  place = next;
  console.log(`stored up to ${position.offset - 1}`);
}
