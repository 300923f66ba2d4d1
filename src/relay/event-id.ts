/** A place in a log, as a client gives it back. */
export interface EventId {
  /** Which log: each has its own word, so that a restart of the relay is noticed. */
  readonly epoch: string;
  readonly seq: number;
  readonly frames: number;
  /** No event before it is later, in epoch ms. */
  readonly at: number;
}

/** Writes a place as the `id` of a message. The time is rounded up: no event before the place is later than it says. */
export const eventId = (epoch: string, { seq, frames, at }: Omit<EventId, 'epoch'>): string =>
  `${epoch}.${seq}.${frames}.${Math.max(0, Math.ceil(at))}`;

/** Reads a `Last-Event-ID`; `undefined` for what this relay cannot have written. */
export const parseEventId = (text: string | undefined): EventId | undefined => {
  const [, epoch = '', ...numbers] = /^([\w-]{1,40})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/.exec(text ?? '') ?? [];
  const [seq = 0, frames = 0, at = 0] = numbers.map(Number);
  return epoch === '' ? undefined : { epoch, seq, frames, at };
};
