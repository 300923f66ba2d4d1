// Takes three frames and unsubscribes: nothing may keep this process alive.
import { take } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';

tradeFeed$('market')
  .pipe(take(3))
  .subscribe((frame) => console.log(frame.text()));
