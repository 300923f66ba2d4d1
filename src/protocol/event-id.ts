/** A position in the log of a relay: the id of a message. A client sends it back in `Last-Event-ID`. */
export interface EventId {
  /** Identifies the log. A restarted relay has a new one. Positions of different logs cannot be compared. */
  readonly epoch: string;
  /** The number of events before the position, without watermarks. */
  readonly seq: number;
  /** The number of frames before the position. */
  readonly frames: number;
  /** No event before the position is later, in epoch ms. */
  readonly at: number;
}

/** Writes a position as the `id` of a message. Rounds the time up, so that no event before the position is later. */
export const formatEventId = (epoch: string, { seq, frames, at }: Omit<EventId, 'epoch'>): string =>
  `${epoch}.${seq}.${frames}.${Math.max(0, Math.ceil(at))}`;

/** Reads the id of a message; returns `undefined` for text in another format. */
export const parseEventId = (text: string | undefined): EventId | undefined => {
  const [, epoch = '', ...numbers] = /^([\w-]{1,40})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/.exec(text ?? '') ?? [];
  const [seq = 0, frames = 0, at = 0] = numbers.map(Number);
  return epoch === '' ? undefined : { epoch, seq, frames, at };
};
