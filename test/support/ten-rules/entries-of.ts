import type { Failed, Issued, Lifecycle, Seen } from './seen.js';

type Of<What extends Seen['what']> = Extract<Seen, { readonly what: What }>;

export const entriesOf = <What extends Seen['what']>(
  log: readonly Seen[],
  ...what: readonly What[]
): readonly Of<What>[] => log.filter((seen): seen is Of<What> => (what as readonly string[]).includes(seen.what));

export const eventsOf = (log: readonly Seen[]): readonly Lifecycle[] =>
  entriesOf(log, 'event').map(({ event }) => event);

export const failuresOf = (log: readonly Seen[]): readonly Failed[] =>
  eventsOf(log).filter((event): event is Failed => event.type === 'disconnected' || event.type === 'gap');

export const issued = (log: readonly Seen[]): readonly Issued[] =>
  entriesOf(log, 'ticket-answered').flatMap(({ ticket }) => (ticket ? [ticket] : []));
