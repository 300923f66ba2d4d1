// Records a hundred frames and ends in the same turn, by process.exit or by an uncaught exception.
import { Subject } from 'rxjs';
import { Frame, recordTo } from 'rx-trade-feed';

const [path = '', how = ''] = process.argv.slice(2);
const frames = new Subject();
frames.pipe(recordTo(path)).subscribe();
for (let number = 0; number < 100; number += 1)
  frames.next(new Frame('market', Buffer.from(JSON.stringify({ number })), false, Date.now(), 1));
if (how === 'exit') process.exit();
throw new Error('on purpose');
