import type { Frame } from '../../protocol/frame.js';
import { frameOf } from './item.js';
import { clustersOf, isSparse, movedTo, packed, viewOf } from './own-bytes.js';

/**
 * Makes values fit to be held for longer than their `next`, and to be let go together. Make one per subscription, and pass it what is held, in
 * order.
 *
 * Frames are views of the buffer that they were read into, and a single one keeps all of it alive. When what came in one turn, or out of
 * one buffer, is there, those frames move to a buffer of their own that are less than three quarters of theirs. So what is held
 * costs at most one and a third times its bytes.
 */
export const keeper = (): (<T>(value: T) => T) => {
  let buffer: ArrayBufferLike | undefined;
  let frames: Frame[] = [];
  let bytes = 0;
  let isScheduled = false;

  const settle = (): void => {
    const settled = frames;
    buffer = undefined;
    frames = [];
    bytes = 0;
    for (const cluster of clustersOf(settled, dataOf))
      if (isSparse(cluster.bytes, cluster.bufferBytes)) packed(cluster.values, dataOf, movedTo);
  };

  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    // Behind what else was read in this turn.
    queueMicrotask(() => {
      isScheduled = false;
      settle();
    });
  };

  return (value) => {
    const view = viewOf(value);
    if (view === undefined) return value;
    const { buffer: its, byteLength } = view;
    if (!isSparse(byteLength, its.byteLength)) return value;
    const frame = frameOf(value);
    // A byte array can be put elsewhere only now.
    if (frame === undefined) return ownBytes(value);
    if (its !== buffer) {
      settle();
      buffer = its;
      schedule();
    }
    bytes += byteLength;
    // Once they are most of it they stay where they are, and need not be remembered.
    if (isSparse(bytes, its.byteLength)) frames.push(frame);
    else if (frames.length > 0) frames = [];
    return value;
  };
};

const dataOf = ({ data }: Frame): Uint8Array => data;

const ownBytes = <T>(value: T): T => {
  let own = value;
  packed(
    [value as Uint8Array],
    (view) => view,
    (_, view) => (own = movedTo(own, view)),
  );
  return own;
};
