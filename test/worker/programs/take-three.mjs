// Takes three frames from a worker and unsubscribes. Nothing may keep this process alive.
import { take } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';

tradeFeed$('market', { receiveIn: 'worker' })
  .pipe(take(3))
  .subscribe((frame) => console.log(frame.text()));
