// Appends frames numbered `run:0`, `run:1`, … to a log: COUNT of them, or until it's killed.
//
//   writer.mjs FOLDER RUN [COUNT] [OPTIONS]
import { Subject } from 'rxjs';
import { feedLog } from '../../../src/log/index.ts';
import { Frame } from '../../../src/protocol/frame.ts';

const [folder, run, count = 'Infinity', options = '{}'] = process.argv.slice(2);
const events = new Subject();
events.pipe(feedLog(folder).append(JSON.parse(options))).subscribe({
  error: ({ code }) => {
    console.log(code);
    process.exit(1);
  },
});
events.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
let n = 0;
const turn = () => {
  // As many frames as a socket delivers at once.
  for (let end = Math.min(Number(count), n + 40); n < end; n += 1) {
    const payload = JSON.stringify({ id: `${run}:${n}`, filler: 'x'.repeat(n % 300) });
    events.next(new Frame('market', Buffer.from(payload), false, Date.now(), 1));
  }
  if (n < Number(count)) setTimeout(turn, 1);
  else events.complete();
};
turn();
