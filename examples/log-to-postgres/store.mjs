// @ts-check
// Stores the frames of a log in PostgreSQL, with the offset in the transaction of the rows: no row is lost and none is there twice, whenever you kill
// this program. It needs no package for PostgreSQL, only `psql`.
//
//   node examples/log-to-postgres/store.mjs FOLDER    with the settings of psql: PGHOST, PGDATABASE, …
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { feedLog } from 'rx-trade-feed/log';

const [folder = 'market'] = process.argv.slice(2);

/** Runs a script of SQL in one transaction, in one process of psql. Returns its output. */
const psql = async (/** @type {string} */ script) => {
  const args = [
    '--no-psqlrc',
    '--quiet',
    '--tuples-only',
    '--no-align',
    '--set',
    'ON_ERROR_STOP=1',
    '--single-transaction',
  ];
  const child = spawn('psql', [...args, '--file', '-'], { stdio: ['pipe', 'pipe', 'inherit'] });
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

await psql(`
  set client_min_messages = warning;
  create table if not exists frames (at timestamptz, payload text);
  create table if not exists position (log text, next bigint);
`);
const [log, next] = (await psql('select log, next from position;')).split('|');
const from = next === undefined ? 'earliest' : { log, offset: Number(next) };
console.log(`from ${next ?? 'the beginning'}`);

for await (const records of feedLog(folder).read({ from })) {
  const stored = records.flatMap((record) => ('offset' in record ? [record] : []));
  const last = stored.at(-1);
  if (last === undefined) continue; // only the time has moved
  const rows = stored.flatMap((record) =>
    record.type === 'frame' ? [`${new Date(record.receivedAt).toISOString()}\t${field(record.text())}`] : [],
  );
  await psql(`
copy frames from stdin;
${rows.map((row) => `${row}\n`).join('')}\\.
delete from position;
insert into position values ('${last.log}', ${last.offset + 1});
`);
  console.log(`stored up to ${last.offset}`);
}
