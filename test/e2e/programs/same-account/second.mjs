import { tradeFeed$ } from 'rx-trade-feed';

export const subscribeTo = (options, observer) => tradeFeed$('market', options).subscribe(observer); // the second place
