import type { ObservableNotification } from 'rxjs';
import type { Received } from '../../protocol/event-line.js';
import type { Ended } from './tab-message.js';

/** An event, or the end of the feed: it ends the subscription whatever role the tab has. */
export type Notification = ObservableNotification<Received>;

/** Makes the notification of an event. */
export const nextOf = (value: Received): Notification => ({ kind: 'N', value });

/** Makes the notification of the end that a leader has posted. */
export const ending = ({ failure: error }: Ended): Notification =>
  error === undefined ? { kind: 'C' } : { kind: 'E', error };
