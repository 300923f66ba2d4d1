// Ten times: appends 100 frames to the log of a place, unsubscribes, and closes the connection without waiting. Prints `done`.
//
//   leaver.mjs PLACE
import { Subject } from 'rxjs';
import { Frame } from '../../../src/protocol/frame.ts';
import { connectTo } from './log-at.mjs';

const [place] = process.argv.slice(2);
for (let round = 0; round < 10; round += 1) {
  const { log, close } = await connectTo(place);
  const source = new Subject();
  const isOpen = new Promise((resolve) => {
    const { subscribe } = source;
    source.subscribe = (...args) => {
      resolve();
      return subscribe.apply(source, args);
    };
  });
  const subscription = source.pipe(log.append()).subscribe();
  await isOpen;
  source.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
  for (let n = 0; n < 100; n += 1)
    source.next(new Frame('market', Buffer.from(`"${round}:${n}"`), false, Date.now(), 1));
  subscription.unsubscribe();
  await close();
}
console.log('done');
