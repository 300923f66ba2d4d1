// Appends frames numbered `run:0`, `run:1`, … to a log: COUNT of them, or until it's killed.
//
//   writer.mjs PLACE RUN [COUNT] [OPTIONS]
import { Observable } from 'rxjs';
import { Frame } from '../../../src/protocol/frame.ts';
import { endWith, logAt } from './log-at.mjs';

const [place, run, count = 'Infinity', options = '{}'] = process.argv.slice(2);
const log = await logAt(place, JSON.parse(options));
// The log subscribes once nobody else writes it.
const feed = new Observable((events) => {
  events.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
  let n = 0;
  const turn = () => {
    // As many frames as a socket delivers at once.
    for (let end = Math.min(Number(count), n + 40); n < end; n += 1) {
      const payload = JSON.stringify({ id: `${run}:${n}`, filler: 'x'.repeat(n % 300) });
      events.next(new Frame('market', Buffer.from(payload), false, Date.now(), 1));
    }
    if (n < Number(count)) setTimeout(turn, 10);
    else events.complete();
  };
  turn();
});
// It goes on after an outage of any length.
const onError = () => undefined;
feed.pipe(log.append({ onError })).subscribe({ error: endWith, complete: () => process.exit() });
