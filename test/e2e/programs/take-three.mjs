// Takes three frames and unsubscribes. Then the process must exit.
import { take } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';

tradeFeed$('market')
  .pipe(take(3))
  .subscribe((frame) => console.log(frame.text()));
