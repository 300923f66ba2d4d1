import type { LifecycleEvent } from '../../protocol/event.js';
import type { Frame } from '../../protocol/frame.js';
import type { Report } from '../election/election.js';
import type { BatchMessage, MessageHead, PlainMessage } from './feed-message.js';

/** The place of the next frame or event: its generation, the owner, and how many of that generation precede it. */
export interface Place {
  readonly gen: number;
  readonly owner: string;
  readonly sequence: number;
}

/** Numbers the frames and events of an owner, and creates the messages for its followers. */
export interface Publisher {
  /** The place of the next frame or event. The same object changes with each of them. */
  readonly place: Place;
  /** Sets what the next messages report. A new generation starts again at 0. */
  report(report: Report, epoch: number): void;
  /** Returns the head of a message that begins with the next frame. */
  readonly head: (at: number) => MessageHead;
  /** Counts a frame. */
  count(): void;
  /** Counts a frame, and returns a message with it. */
  frame(frame: Frame): BatchMessage;
  /** Returns `undefined` for an event before the first connection of a generation, which only concerns the owner. */
  event(event: LifecycleEvent): PlainMessage | undefined;
  beat(at: number): PlainMessage;
  /** Returns the last message of a generation; `undefined` for a generation that this replica does not publish. */
  end(gen: number, at: number): PlainMessage | undefined;
}

/** Creates a {@link Publisher}. */
export const createPublisher = (): Publisher => {
  // One object with plain fields: they are read for each frame.
  const place = { gen: 0, owner: '', sequence: 0, frames: 0 };
  let reported: Pick<MessageHead, 'epoch' | 'phase' | 'revision'> = { epoch: 0, phase: 'opening', revision: 0 };
  let hasOpened = false;

  // A spread takes longer than the rest of the work for a message.
  const head = (at: number): MessageHead => {
    const { gen, owner, sequence, frames } = place;
    const { epoch, phase, revision } = reported;
    return { epoch, gen, owner, phase, revision, sequence, frames, at };
  };

  const count = (): void => {
    place.sequence += 1;
    place.frames += 1;
  };

  return {
    place,
    report: ({ gen, owner, phase, revision }, epoch) => {
      if (gen !== place.gen) {
        // An open connection continues in the new generation.
        hasOpened = hasOpened && phase === 'open';
        [place.sequence, place.frames] = [0, 0];
      }
      [place.gen, place.owner] = [gen, owner];
      reported = { epoch, phase, revision };
    },
    head,
    count,
    frame: (frame) => {
      const message: BatchMessage = { ...head(frame.receivedAt), kind: 'batch', batch: [frame] };
      count();
      return message;
    },
    event: (event) => {
      if (event.type === 'opened') hasOpened = true;
      if (!hasOpened) return undefined;
      const message: PlainMessage = { ...head(event.type === 'gap' ? event.to : event.at), kind: 'event', event };
      place.sequence += 1;
      return message;
    },
    beat: (at) => ({ ...head(at), kind: 'beat' }),
    end: (gen, at) => (gen === place.gen ? { ...head(at), kind: 'end' } : undefined),
  };
};
