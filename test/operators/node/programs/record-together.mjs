// Begins to record at a moment that others are told too, and says its number, or why it was refused.
import { Subject } from 'rxjs';
import { Frame, recordTo } from 'rx-trade-feed';

const [path = '', number = '', startAt = ''] = process.argv.slice(2);
// A timer is not as precise.
while (Date.now() < Number(startAt));
const frames = new Subject();
frames.pipe(recordTo(path)).subscribe({
  error: (error) => process.stdout.write(error.message),
  complete: () => process.stdout.write(number),
});
const data = Buffer.from(JSON.stringify({ number: Number(number) }));
for (let n = 0; n < 100; n += 1) frames.next(new Frame('market', data, false, Date.now(), 1));
setTimeout(() => frames.complete(), 1_000);
