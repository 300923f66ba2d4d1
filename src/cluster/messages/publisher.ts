import type { LifecycleEvent } from '../../protocol/event.js';
import type { Frame } from '../../protocol/frame.js';
import type { Report } from '../election/election.js';
import type { FeedMessage, MessageHead } from './feed-message.js';

/** Numbers the frames and events of an owner, and creates the messages for its followers. */
export interface Publisher {
  /** Sets what the next messages report. A new generation starts again at 0. */
  report(report: Report, epoch: number): void;
  frame(frame: Frame): FeedMessage;
  /** Returns `undefined` for an event before the first connection of a generation, which only concerns the owner. */
  event(event: LifecycleEvent): FeedMessage | undefined;
  beat(at: number): FeedMessage;
  /** Returns the last message of a generation; `undefined` for a generation that this replica does not publish. */
  end(gen: number, at: number): FeedMessage | undefined;
}

/** Creates a {@link Publisher}. */
export const createPublisher = (): Publisher => {
  let current: Report & { readonly epoch: number } = { gen: 0, owner: '', phase: 'opening', revision: 0, epoch: 0 };
  let sequence = 0;
  let frames = 0;
  let hasOpened = false;

  // A spread of `current` takes longer than the rest of the work for a frame.
  const head = (at: number): MessageHead => {
    const { epoch, gen, owner, phase, revision } = current;
    return { epoch, gen, owner, phase, revision, sequence, frames, at };
  };

  return {
    report: (report, epoch) => {
      if (report.gen !== current.gen) {
        // An open connection continues in the new generation.
        hasOpened = hasOpened && report.phase === 'open';
        [sequence, frames] = [0, 0];
      }
      current = { ...report, epoch };
    },
    frame: (frame) => {
      const { epoch, gen, owner, phase, revision } = current;
      const at = frame.receivedAt;
      const batch = [frame];
      const message: FeedMessage = { epoch, gen, owner, phase, revision, sequence, frames, at, kind: 'batch', batch };
      sequence += 1;
      frames += 1;
      return message;
    },
    event: (event) => {
      if (event.type === 'opened') hasOpened = true;
      if (!hasOpened) return undefined;
      const message: FeedMessage = { ...head(event.type === 'gap' ? event.to : event.at), kind: 'event', event };
      sequence += 1;
      return message;
    },
    beat: (at) => ({ ...head(at), kind: 'beat' }),
    end: (gen, at) => (gen === current.gen ? { ...head(at), kind: 'end' } : undefined),
  };
};
