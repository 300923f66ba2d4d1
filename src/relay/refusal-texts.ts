/** The text of a 503. It does not contain the number of clients, because anyone can read it. */
export const noRoom = 'The relay has no room. Retry later.';

/** The text of a 403 for a page of an origin that is not allowed. */
export const originRefused =
  'Pages of this origin may not receive the feed. To allow them, add the origin to `allowOrigins`.';

/** The text of a 400 for a pipelined request. */
export const connectionBusy =
  'This connection is still sending another response. Wait for its end, or open another connection.';
