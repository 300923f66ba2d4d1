// Records numbered frames to the file in its argument, as fast as a busy feed, until it is killed.
import { Subject } from 'rxjs';
import { Frame, recordTo } from 'rx-trade-feed';

const [path = '', first = '0', maxFileBytes = 'Infinity'] = process.argv.slice(2);
const frames = new Subject();
frames.pipe(recordTo(path, { maxFileBytes: Number(maxFileBytes) })).subscribe();

let number = Number(first);
const turn = () => {
  // As many frames as one read of the socket contains.
  for (let n = 0; n < 150; n += 1) {
    const payload = JSON.stringify({ number, filler: 'x'.repeat(number % 700) });
    frames.next(new Frame('market', Buffer.from(payload), false, Date.now(), 1));
    number += 1;
  }
  setImmediate(turn);
};
turn();
