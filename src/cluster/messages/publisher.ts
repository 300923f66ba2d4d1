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
export interface Publisher extends Place {
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
  let current: Report & { readonly epoch: number } = { gen: 0, owner: '', phase: 'opening', revision: 0, epoch: 0 };
  let sequence = 0;
  let frames = 0;
  let hasOpened = false;

  // A spread of `current` takes longer than the rest of the work for a message.
  const head = (at: number): MessageHead => {
    const { epoch, gen, owner, phase, revision } = current;
    return { epoch, gen, owner, phase, revision, sequence, frames, at };
  };

  const count = (): void => {
    sequence += 1;
    frames += 1;
  };

  return {
    get gen() {
      return current.gen;
    },
    get owner() {
      return current.owner;
    },
    get sequence() {
      return sequence;
    },
    report: (report, epoch) => {
      if (report.gen !== current.gen) {
        // An open connection continues in the new generation.
        hasOpened = hasOpened && report.phase === 'open';
        [sequence, frames] = [0, 0];
      }
      current = { ...report, epoch };
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
      sequence += 1;
      return message;
    },
    beat: (at) => ({ ...head(at), kind: 'beat' }),
    end: (gen, at) => (gen === current.gen ? { ...head(at), kind: 'end' } : undefined),
  };
};
