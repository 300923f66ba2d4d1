import type { Frame } from '../protocol/frame.js';
import type { EventItem, Item } from './messages.js';
import { awaitHandled, handledOf } from './progress.js';
import { createStore } from './store.js';

/** How many batches may be sent but not handled yet: the main thread handles one while the next one is being sent. */
const maxBatches = 2;
/** Size limit of a batch, unless a single block is larger. A socket can deliver this much in one turn of the event loop. */
const batchBytes = 2 * 1024 * 1024;

/** Sends frames and events to the main thread: at the end of each turn while it keeps up, otherwise in larger batches from a bounded store. */
export interface HandOver {
  addFrame(frame: Frame): void;
  addEvent(item: EventItem): void;
  /** Sends more, after the main thread has handled a batch. */
  resume(): void;
  /** Sends a watermark if the store is empty and the main thread keeps up. Do not call it while a read is handled. */
  sendWatermark(): void;
}

/**
 * Creates a {@link HandOver}.
 *
 * @param post - sends a batch and transfers the listed buffers
 * @param progress - how many batches the main thread has handled
 * @param capacityBytes - capacity of the store
 */
export const createHandOver = (
  post: (items: readonly Item[], transferred: ArrayBuffer[]) => void,
  progress: Int32Array,
  capacityBytes: number,
): HandOver => {
  const store = createStore(capacityBytes);
  /** The bytes of each batch that is sent but not handled yet. */
  const inFlight: number[] = [];
  let sent = 0;
  let isDue = false;

  const hasRoom = (): boolean => {
    while (inFlight.length > ((sent - handledOf(progress)) | 0)) store.release(inFlight.shift() as number);
    return inFlight.length < maxBatches;
  };

  const hasRoomOrWaits = (): boolean => {
    if (hasRoom()) return true;
    awaitHandled(progress);
    return hasRoom();
  };

  const sendBatch = (items: readonly Item[], watermark: number): void => {
    const buffers = items.flatMap((item) => (item.type === 'frames' ? [item.bytes] : []));
    inFlight.push(buffers.reduce((sum, { byteLength }) => sum + byteLength, 0));
    sent = (sent + 1) | 0;
    post([...items, watermarkAt(watermark)], buffers);
  };

  // Frames that remain in the store are not older than the frames that are sent, so the watermark is the time of the newest sent frame.
  const watermarkAfter = (items: readonly Item[], now: number): number =>
    store.isEmpty ? now : (newestIn(items) ?? -Infinity);

  /** @param now - a time in epoch ms: frames after this call are not older */
  const send = (now: number): void => {
    while (!store.isEmpty && hasRoomOrWaits()) {
      const items = store.take(batchBytes);
      sendBatch(items, watermarkAfter(items, now));
    }
  };

  // Frames that are read in one turn are sent together, except full blocks, which `addFrame` sends at once.
  const sendAfterReads = (): void => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      send(Date.now());
    });
  };

  return {
    addFrame: (frame) => {
      if (store.addFrame(frame)) {
        // More frames of this read may follow with the same time, so the watermark must not be later.
        send(frame.receivedAt);
        store.shrink();
      }
      sendAfterReads();
    },
    addEvent: (item) => {
      store.addEvent(item);
      sendAfterReads();
    },
    resume: () => send(Date.now()),
    sendWatermark: () => {
      if (store.isEmpty && hasRoom()) sendBatch([], Date.now());
    },
  };
};

const watermarkAt = (at: number): Item => ({ type: 'event', event: { type: 'watermark', at } });

const newestIn = (items: readonly Item[]): number | undefined => items.findLast((item) => item.type === 'frames')?.to;
