import type { Frame } from '../protocol/frame.js';
import type { Item, Told } from './messages.js';
import { awaitHandled, handledOf } from './progress.js';
import { createStore } from './store.js';

/** Batches that the main thread may have before it: one that it works on, and one more, so that it need not wait for it. */
const mostBatches = 2;
/** The bytes of a batch, at the most, unless a single frame is larger. A socket gives as much in one turn of the loop. */
const batchBytes = 2 * 1024 * 1024;

/** Hands over what is received: at once while the main thread keeps up, else in larger batches, out of a bounded store. */
export interface HandOver {
  put(frame: Frame): void;
  tell(told: Told): void;
  /** The main thread has handled something: there is room for more. */
  goOn(): void;
  /** Sends a watermark if no frame waits. Do not call it while a read is handled. */
  beat(): void;
}

/**
 * Makes it.
 *
 * @param post - sends a batch, and with it the memory that is listed
 * @param progress - how far the main thread has come
 * @param capacityBytes - the bound of the store
 */
export const createHandOver = (
  post: (items: readonly Item[], transferred: ArrayBuffer[]) => void,
  progress: Int32Array,
  capacityBytes: number,
): HandOver => {
  const store = createStore(capacityBytes);
  /** The bytes of each batch that is under way. */
  const underWay: number[] = [];
  let sent = 0;
  let isDue = false;

  const hasRoom = (): boolean => {
    while (underWay.length > ((sent - handledOf(progress)) | 0)) store.release(underWay.shift() as number);
    return underWay.length < mostBatches;
  };

  const hasRoomOrAwaits = (): boolean => {
    if (hasRoom()) return true;
    awaitHandled(progress);
    return hasRoom();
  };

  const sendBatch = (items: readonly Item[], watermark: number): void => {
    const buffers = items.flatMap((item) => (item.type === 'frames' ? [item.bytes] : []));
    underWay.push(buffers.reduce((sum, { byteLength }) => sum + byteLength, 0));
    sent = (sent + 1) | 0;
    post([...items, watermarkAt(watermark)], buffers);
  };

  // A frame that still waits is not older than those that are handed over.
  const watermarkAfter = (items: readonly Item[], now: number): number =>
    store.isEmpty ? now : (newestIn(items) ?? -Infinity);

  /** @param now - a time in epoch ms: frames that come after this call are not older */
  const send = (now: number): void => {
    while (!store.isEmpty && hasRoomOrAwaits()) {
      const items = store.take(batchBytes);
      sendBatch(items, watermarkAfter(items, now));
    }
  };

  // Whatever is read in one turn goes together.
  const sendAfterReads = (): void => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      send(Date.now());
    });
  };

  return {
    put: (frame) => {
      if (store.put(frame)) {
        // Others of this read follow, with its time.
        send(frame.receivedAt);
        store.shrink();
      }
      sendAfterReads();
    },
    tell: (told) => {
      store.tell(told);
      sendAfterReads();
    },
    goOn: () => send(Date.now()),
    beat: () => {
      if (store.isEmpty && hasRoom()) sendBatch([], Date.now());
    },
  };
};

const watermarkAt = (at: number): Item => ({ type: 'event', event: { type: 'watermark', at } });

const newestIn = (items: readonly Item[]): number | undefined => items.findLast((item) => item.type === 'frames')?.to;
