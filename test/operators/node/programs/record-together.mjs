// Prints `ready`, begins to record at the first line on stdin, prints its number or why it was refused, and ends with stdin.
import { once } from 'node:events';
import { Subject } from 'rxjs';
import { Frame, recordTo } from 'rx-trade-feed';

const [path = '', number = ''] = process.argv.slice(2);
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const frames = new Subject();
frames.pipe(recordTo(path)).subscribe({ error: (error) => process.stdout.write(error.message) });
const data = Buffer.from(JSON.stringify({ number: Number(number) }));
for (let n = 0; n < 100; n += 1) frames.next(new Frame('market', data, false, Date.now(), 1));
if (frames.observed) process.stdout.write(number);
// The recorder continues until all others have been refused.
await once(process.stdin.resume(), 'end');
frames.complete();
