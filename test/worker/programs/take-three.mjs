// Takes three frames that a worker receives, and unsubscribes: nothing may keep this process alive.
import { take } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';

tradeFeed$('market', { receiveIn: 'worker' })
  .pipe(take(3))
  .subscribe((frame) => console.log(frame.text()));
