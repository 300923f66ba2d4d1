import { tradeFeed$ } from 'rx-trade-feed';

export const subscribeTo = (feed, options, observer) => tradeFeed$(feed, options).subscribe(observer); // the second place
